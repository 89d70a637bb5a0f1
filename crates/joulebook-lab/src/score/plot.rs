//! The plot of a judgement: for each load and rule, how |error| is distributed.

use plotters::{
    coord::Shift,
    prelude::{
        BLACK, ChartBuilder, Circle, Color, DrawingArea, IntoDrawingArea, IntoFont, IntoLogRange,
        PathElement, RGBColor, Rectangle, SVGBackend, TextStyle, WHITE,
    },
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{Judged, Knowledge, Name, Sample, quantile};

/// Width and height; the width grows with the loads.
const SIZE: (u32, u32) = (1280, 680);
/// Beside the loads, and of each of them.
const SIDES: u32 = 216;
const LOAD: u32 = 104;
/// Height of titles and legend.
const HEAD: u32 = 76;
/// What is drawn of errors below, as a share.
const LEAST: f64 = 1e-5;
const MOST: f64 = 2e3;
const GREY: RGBColor = RGBColor(110, 110, 110);
/// Colours that also those tell apart who do not see red or green.
const PALETTE: [(Name, RGBColor); 7] = [
    (Name::Calibrated, RGBColor(0, 114, 178)),
    (Name::Eight, RGBColor(86, 180, 233)),
    (Name::Steps, RGBColor(60, 60, 60)),
    (Name::Equal, RGBColor(230, 159, 0)),
    (Name::Output, RGBColor(0, 158, 115)),
    (Name::Lifetime, RGBColor(204, 121, 167)),
    (Name::Snapshot, RGBColor(213, 94, 0)),
];

/// Why there is no plot.
#[derive(Debug, thiserror::Error)]
#[error("the plot could not be drawn: {0}")]
pub struct PlotError(String);

/// The plot as an SVG document, for an observer who is told admissions.
pub fn plot(judged: &[Judged]) -> Result<String, PlotError> {
    let mut svg = String::new();
    draw(&mut svg, judged).map_err(|error| PlotError(error.to_string()))?;
    Ok(svg)
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn draw(svg: &mut String, judged: &[Judged]) -> Done {
    let loads = u32::try_from(judged.len()).unwrap_or(u32::MAX).saturating_mul(LOAD);
    let size = (SIZE.0.max(SIDES.saturating_add(loads)), SIZE.1);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(HEAD);
    let head_height = HEAD as i32;
    titles(&head, judged)?;
    let groups = judged.len().max(1) as f64;
    let mut chart = ChartBuilder::on(&body)
        .margin_left(10)
        .margin_right(110)
        .margin_bottom(10)
        .x_label_area_size(64)
        .y_label_area_size(96)
        .build_cartesian_2d(0.0..groups, (LEAST..MOST).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .bold_line_style(BLACK.mix(0.12))
        .light_line_style(BLACK.mix(0.0))
        .y_labels(9)
        .y_label_formatter(&|share| percent(*share))
        .y_desc("|error| of a request's joules, % of its true joules")
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 16))
        .draw()?;
    let area = chart.plotting_area();
    for (share, words) in [(0.03, ["3 %", "aim of median"]), (0.25, ["25 %", "aim of p95"])] {
        area.draw(&PathElement::new([(0.0, share), (groups, share)], GREY))?;
        let (x, y) = area.map_coordinate(&(groups, share));
        for (row, line) in words.into_iter().enumerate() {
            let style = TextStyle::from(("sans-serif", 13).into_font()).color(&GREY);
            body.draw_text(line, &style, (x + 6, y - head_height - 14 + 15 * row as i32))?;
        }
    }
    for (at, load) in judged.iter().enumerate() {
        let left = at as f64;
        if at > 0 {
            let line = PathElement::new([(left, LEAST), (left, MOST)], BLACK.mix(0.15));
            area.draw(&line)?;
        }
        for (place, (rule, colour)) in PALETTE.iter().enumerate() {
            let x = left + (place as f64 + 1.0) / (PALETTE.len() as f64 + 1.0);
            if let Some(verdict) = load.verdict(*rule, Knowledge::Admission) {
                let [p5, p25, median, p75, p95] = spread(&verdict.samples);
                let half = 0.04;
                let box_of = [(x - half, p25), (x + half, p75)];
                area.draw(&PathElement::new([(x, p5), (x, p95)], colour.stroke_width(2)))?;
                area.draw(&Rectangle::new(box_of, colour.mix(0.55).filled()))?;
                area.draw(&Circle::new((x, median), 4, colour.filled()))?;
                area.draw(&Circle::new((x, median), 2, WHITE.filled()))?;
            }
        }
        let (x, bottom) = area.map_coordinate(&(left + 0.5, LEAST));
        let rate = format!("{}/s, {} in flight", load.load.rate, in_flight(load.in_flight));
        let words = if load.load.overload { "overload" } else { "" };
        let lines = [(load.load.name.to_owned(), 14), (rate, 12), (words.to_owned(), 12)];
        for (row, (line, size)) in lines.into_iter().enumerate() {
            let style = TextStyle::from(("sans-serif", size).into_font()).pos(CENTRE_BELOW);
            root.draw_text(&line, &style, (x, bottom + 8 + 18 * row as i32))?;
        }
    }
    root.present()?;
    Ok(())
}

const CENTRE_BELOW: Pos = Pos { h_pos: HPos::Center, v_pos: VPos::Top };

/// The 5th, 25th, 50th, 75th and 95th hundredth of |error|, within the plot.
fn spread(samples: &[Sample]) -> [f64; 5] {
    let error = |it: &Sample| (it.charged / it.truth - 1.0).abs().clamp(LEAST, MOST);
    let mut errors: Vec<f64> = samples.iter().map(error).collect();
    errors.sort_by(f64::total_cmp);
    [0.05, 0.25, 0.5, 0.75, 0.95].map(|share| quantile(&errors, share).unwrap_or(LEAST))
}

fn titles(head: &DrawingArea<SVGBackend<'_>, Shift>, judged: &[Judged]) -> Done {
    let requests: usize = judged.iter().map(|it| it.requests).sum();
    let title = "How far each rule lies from a request's true joules, by load";
    head.draw_text(title, &TextStyle::from(("sans-serif", 22).into_font()), (84, 10))?;
    let note = format!(
        "{} requests, admission known. Dot: median; thick bar: middle half; thin bar: 5 to 95 %. \
         Errors below 0.001 % lie on the lower edge.",
        thousands(requests as u64)
    );
    let small = TextStyle::from(("sans-serif", 13).into_font());
    head.draw_text(&note, &small.color(&GREY), (84, 36))?;
    let mut x = 84;
    for (rule, colour) in PALETTE {
        head.draw(&Rectangle::new([(x, 58), (x + 14, 70)], colour.filled()))?;
        let style = TextStyle::from(("sans-serif", 15).into_font());
        head.draw_text(rule.words(), &style, (x + 20, 56))?;
        x += 42 + 7 * rule.words().chars().count() as i32;
    }
    Ok(())
}

fn in_flight(mean: f64) -> String {
    if mean < 10.0 { format!("{mean:.1}") } else { format!("{mean:.0}") }
}

/// A share in per cent, as a label of an axis of powers of ten.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 0.99 {
        return format!("{} %", thousands(percent.round() as u64));
    }
    let decimals = (-percent.log10()).round().clamp(0.0, 4.0) as usize;
    format!("{percent:.decimals$} %")
}

fn thousands(count: u64) -> String {
    match count / 1000 {
        0 => count.to_string(),
        more => format!("{},{:03}", thousands(more), count % 1000),
    }
}
