//! Lines, dots and words on a white page, in pixels.

use plotters::{
    backend::DrawingBackend,
    prelude::SVGBackend,
    style::{
        Color, FontDesc, FontFamily, FontStyle, IntoTextStyle, RGBColor, ShapeStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

/// Red, green, blue.
pub type Colour = (u8, u8, u8);
/// A place, in pixels from the upper left.
pub type Place = (i32, i32);

/// Which part of a word lies at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Its upper left.
    Start,
    /// Its upper middle.
    Middle,
    /// Its upper right.
    End,
    /// Its right, in half its height.
    EndCentre,
    /// Its lower middle.
    Above,
}

/// The backend writes sizes divided by this.
const FONT_UNIT: f64 = 1.24;

/// The backend knows whole units only: so many of them are one pixel.
const UNITS: i32 = 4;

/// A page that is drawn on.
pub struct Canvas<'a>(SVGBackend<'a>);

impl<'a> Canvas<'a> {
    /// A white page; it is written to `text`.
    pub fn new(text: &'a mut String, width: i32, height: i32) -> anyhow::Result<Self> {
        let (width, height) = (width * UNITS, height * UNITS);
        let size = (width.unsigned_abs(), height.unsigned_abs());
        let mut backend = SVGBackend::with_string(text, size);
        let white = RGBColor(255, 255, 255).filled();
        backend.draw_rect((0, 0), (width, height), &white, true)?;
        Ok(Self(backend))
    }

    /// A line through these.
    pub fn path(&mut self, places: &[Place], colour: Colour, width: u32) -> anyhow::Result<()> {
        self.line(places.iter().copied().map(scaled), colour, width)
    }

    fn line(
        &mut self,
        places: impl IntoIterator<Item = Place>,
        colour: Colour,
        width: u32,
    ) -> anyhow::Result<()> {
        Ok(self.0.draw_path(places, &style(colour, width * UNITS.unsigned_abs()))?)
    }

    /// A broken line between two places on a straight line through these.
    pub fn dashes(&mut self, places: &[Place], colour: Colour, width: u32) -> anyhow::Result<()> {
        const DASH: f64 = 7.0 * UNITS as f64;
        const GAP: f64 = 5.0 * UNITS as f64;
        let mut left = DASH;
        let mut is_drawn = true;
        let places: Vec<Place> = places.iter().copied().map(scaled).collect();
        for (&from, &to) in places.iter().zip(places.iter().skip(1)) {
            let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
            let length = dx.hypot(dy);
            let at = |part: f64| {
                let share = if length > 0.0 { part / length } else { 0.0 };
                let place = |from: i32, by: f64| from + (by * share).round() as i32;
                (place(from.0, dx), place(from.1, dy))
            };
            let mut done = 0.0;
            while done < length {
                let step = left.min(length - done);
                if is_drawn {
                    self.line([at(done), at(done + step)], colour, width)?;
                }
                done += step;
                left -= step;
                if left <= 0.0 {
                    is_drawn = !is_drawn;
                    left = if is_drawn { DASH } else { GAP };
                }
            }
        }
        Ok(())
    }

    /// A dot; hollow ones are white inside.
    pub fn dot(&mut self, at: Place, colour: Colour, is_hollow: bool) -> anyhow::Result<()> {
        const RADIUS: u32 = 9 * UNITS.unsigned_abs() / 2;
        const HOLE: u32 = 5 * UNITS.unsigned_abs() / 2;
        let at = scaled(at);
        self.0.draw_circle(at, RADIUS, &style(colour, 1), true)?;
        if is_hollow {
            self.0.draw_circle(at, HOLE, &style((255, 255, 255), 1), true)?;
        }
        Ok(())
    }

    /// Words.
    pub fn text(
        &mut self,
        text: &str,
        at: Place,
        size: u32,
        colour: Colour,
        align: Align,
    ) -> anyhow::Result<()> {
        let (across, down) = match align {
            Align::Start => (HPos::Left, VPos::Top),
            Align::Middle => (HPos::Center, VPos::Top),
            Align::End => (HPos::Right, VPos::Top),
            Align::EndCentre => (HPos::Right, VPos::Center),
            Align::Above => (HPos::Center, VPos::Bottom),
        };
        let size = f64::from(size) * f64::from(UNITS) * FONT_UNIT;
        let font = FontDesc::new(FontFamily::SansSerif, size, FontStyle::Normal);
        let ink = rgb(colour);
        let style = font.into_text_style(&(0, 0)).color(&ink).pos(Pos::new(across, down));
        Ok(self.0.draw_text(text, &style, scaled(at))?)
    }

    /// Ends the page.
    pub fn finish(mut self) -> anyhow::Result<()> {
        Ok(self.0.present()?)
    }
}

/// A drawn page at its size in pixels.
pub fn in_pixels(svg: &str, width: i32, height: i32) -> String {
    let units = format!("width=\"{}\" height=\"{}\"", width * UNITS, height * UNITS);
    svg.replacen(&units, &format!("width=\"{width}\" height=\"{height}\""), 1)
}

const fn scaled((x, y): Place) -> Place {
    (x * UNITS, y * UNITS)
}

fn style(colour: Colour, width: u32) -> ShapeStyle {
    rgb(colour).stroke_width(width)
}

const fn rgb((red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}
