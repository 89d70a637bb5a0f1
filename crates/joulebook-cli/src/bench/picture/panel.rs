//! One diagram: an axis below, one at the left, series of points with bars.

use super::{
    FAINT, INK,
    axis::{Axis, brief},
    canvas::{Align, Canvas, Colour, Place},
};

const GRID: Colour = (0xe4, 0xe8, 0xec);
const AXIS: Colour = (0x8a, 0x93, 0x9c);
/// About as wide is a letter of the legend.
const LETTER: i32 = 8;
/// So far a value's words stand aside of a line that rises to one side of it.
const ASIDE: i32 = 12;

/// A point and the interval of its value.
pub struct Point {
    pub at: f64,
    pub value: f64,
    pub bar: Option<(f64, f64)>,
}

/// Points that belong together.
pub struct Series {
    /// Its name; empty where the panel has only one.
    pub name: &'static str,
    pub colour: Colour,
    /// Drawn broken and hollow.
    pub is_second: bool,
    pub points: Vec<Point>,
}

/// One diagram.
#[derive(Default)]
pub struct Panel {
    pub title: String,
    pub unit: &'static str,
    /// What lies along the axis below.
    pub along: &'static str,
    pub series: Vec<Series>,
    /// A line across, and its name.
    pub line: Option<(f64, &'static str)>,
    /// Why there is nothing to draw.
    pub empty: Option<String>,
}

/// Where values lie on the page.
struct Frame {
    across: Axis,
    up: Axis,
    from: Place,
    to: Place,
}

impl Frame {
    fn x(&self, value: f64) -> i32 {
        let width = f64::from(self.to.0 - self.from.0);
        self.from.0 + (self.across.share(value) * width).round() as i32
    }

    fn y(&self, value: f64) -> i32 {
        let height = f64::from(self.to.1 - self.from.1);
        self.to.1 - (self.up.share(value) * height).round() as i32
    }
}

impl Panel {
    /// Draws it between two corners of the page.
    pub fn draw(&self, canvas: &mut Canvas<'_>, from: Place, to: Place) -> anyhow::Result<()> {
        canvas.text(&self.title, (from.0, from.1), 16, INK, Align::Start)?;
        canvas.text(self.unit, (from.0, from.1 + 22), 13, FAINT, Align::Start)?;
        let inner = ((from.0 + 52, from.1 + 50), (to.0 - 12, to.1 - 46));
        let Some(frame) = self.frame(inner.0, inner.1) else {
            let why = self.empty.as_deref().unwrap_or("nothing to show");
            let middle = (i32::midpoint(from.0, to.0), i32::midpoint(from.1, to.1));
            return canvas.text(why, middle, 13, FAINT, Align::Middle);
        };
        self.scales(canvas, &frame)?;
        if let Some((value, name)) = self.line {
            let y = frame.y(value);
            canvas.dashes(&[(frame.from.0, y), (frame.to.0, y)], FAINT, 1)?;
            let text = format!("{name}: {}", brief(value));
            canvas.text(&text, (frame.to.0, y - 17), 12, FAINT, Align::End)?;
        }
        // The first series is drawn last, above the others.
        for (index, series) in self.series.iter().enumerate().rev() {
            series.draw(canvas, &frame, index == 0)?;
        }
        self.legend(canvas, &frame)
    }

    fn frame(&self, from: Place, to: Place) -> Option<Frame> {
        if self.empty.is_some() {
            return None;
        }
        let points = || self.series.iter().flat_map(|series| &series.points);
        let along: Vec<f64> = points().map(|point| point.at).collect();
        let mut values: Vec<f64> = points().map(|point| point.value).collect();
        values.extend(self.line.map(|(value, _)| value));
        // Bars widen the axis as far as they are positive, to twice the values' own reach.
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let bars = points().filter_map(|point| point.bar).flat_map(|(low, high)| [low, high]);
        values.extend(
            bars.filter(|end| (least / 2.0..=most * 2.0).contains(end)).collect::<Vec<_>>(),
        );
        Some(Frame { across: Axis::of(&along, false)?, up: Axis::of(&values, true)?, from, to })
    }

    fn scales(&self, canvas: &mut Canvas<'_>, frame: &Frame) -> anyhow::Result<()> {
        let ((left, top), (right, bottom)) = (frame.from, frame.to);
        for mark in frame.up.marks() {
            let y = frame.y(mark);
            canvas.path(&[(left, y), (right, y)], GRID, 1)?;
            canvas.text(&brief(mark), (left - 8, y), 12, FAINT, Align::EndCentre)?;
        }
        canvas.path(&[(left, bottom), (right, bottom)], AXIS, 1)?;
        canvas.path(&[(left, top), (left, bottom)], AXIS, 1)?;
        // The rungs themselves are the marks below; where they are too close, some lose their words.
        let mut places: Vec<f64> =
            self.series.iter().flat_map(|series| &series.points).map(|point| point.at).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut free_from = i32::MIN;
        for place in places {
            let x = frame.x(place);
            canvas.path(&[(x, bottom), (x, bottom + 5)], AXIS, 1)?;
            let text = brief(place);
            let half = 4 * text.len() as i32 + 4;
            if x - half >= free_from {
                canvas.text(&text, (x, bottom + 9), 12, FAINT, Align::Middle)?;
                free_from = x + half;
            }
        }
        let middle = (i32::midpoint(left, right), bottom + 30);
        canvas.text(self.along, middle, 13, FAINT, Align::Middle)
    }

    fn legend(&self, canvas: &mut Canvas<'_>, frame: &Frame) -> anyhow::Result<()> {
        let named: Vec<&Series> =
            self.series.iter().filter(|series| !series.name.is_empty()).collect();
        if named.len() < 2 {
            return Ok(());
        }
        // Beside the unit, from the right: within the frame it could hide what is drawn.
        let (mut right, y) = (frame.to.0, frame.from.1 - 28);
        for series in named.into_iter().rev() {
            let x = right - 44 - LETTER * series.name.len() as i32;
            series.stroke(canvas, &[(x, y + 8), (x + 34, y + 8)])?;
            canvas.dot((x + 17, y + 8), series.colour, series.is_second)?;
            canvas.text(series.name, (x + 44, y), 13, INK, Align::Start)?;
            right = x - 24;
        }
        Ok(())
    }
}

impl Series {
    fn draw(&self, canvas: &mut Canvas<'_>, frame: &Frame, has_labels: bool) -> anyhow::Result<()> {
        let place = |point: &Point| (frame.x(point.at), frame.y(point.value));
        let places: Vec<Place> = self.points.iter().map(place).collect();
        self.stroke(canvas, &places)?;
        let height = |index: Option<usize>| {
            let at = index.and_then(|index| places.get(index));
            at.map_or(i32::MIN, |at| -at.1)
        };
        for (index, point) in self.points.iter().enumerate() {
            let (x, y) = place(point);
            let (before, after) = (height(index.checked_sub(1)), height(Some(index + 1)));
            if let Some((low, high)) = point.bar {
                let (low, high) = (frame.y(low), frame.y(high));
                canvas.path(&[(x, low), (x, high)], self.colour, 1)?;
                for end in [low, high] {
                    canvas.path(&[(x - 5, end), (x + 5, end)], self.colour, 1)?;
                }
            }
            canvas.dot((x, y), self.colour, self.is_second)?;
            if has_labels {
                let top = point.bar.map_or(y, |(_, high)| frame.y(high).min(y));
                let aside = match (before > -y, after > -y) {
                    (true, false) => ASIDE,
                    (false, true) => -ASIDE,
                    _ => 0,
                };
                let at = (x + aside, top - 9);
                canvas.text(&brief(point.value), at, 12, self.colour, Align::Above)?;
            }
        }
        Ok(())
    }

    fn stroke(&self, canvas: &mut Canvas<'_>, places: &[Place]) -> anyhow::Result<()> {
        if self.is_second {
            canvas.dashes(places, self.colour, 2)
        } else {
            canvas.path(places, self.colour, 2)
        }
    }
}
