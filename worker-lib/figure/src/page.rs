//! Pages of figures, and functions that draw on them.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Paint;

pub(crate) const WIDTH_PX: u32 = 840;
/// Margin to the left of titles, in pixels.
pub(crate) const MARGIN_PX: i32 = 16;
/// Font size of the labels of lines, bars and axes, in pixels.
pub(crate) const LABEL_PX: i32 = 13;
const TITLE_PX: i32 = 16;

/// Area of a page on which figures are drawn.
pub(crate) type Page<'svg> = DrawingArea<SVGBackend<'svg>, Shift>;

/// Draws a page with a title and, below it, a note. Returns the page as SVG. Drawing cannot fail, because the output is
/// written to a string.
pub(crate) fn page(title: &str, note: &str, height_px: u32, draw: impl FnOnce(&Page<'_>)) -> String {
    let mut svg = String::new();
    {
        let page = SVGBackend::with_string(&mut svg, (WIDTH_PX, height_px)).into_drawing_area();
        page.fill(&Paint::PAGE.light).expect("writing cannot fail");
        write(&page, title, (MARGIN_PX, 20), &text_style(TITLE_PX, Paint::INK, HPos::Left));
        write(&page, note, (MARGIN_PX, 42), &label_style(Paint::GREY, HPos::Left));
        draw(&page);
        page.present().expect("writing cannot fail");
    }
    adapt(&svg)
}

/// Adds a style sheet that adapts the colours to the reader's colour scheme. The rules of the style sheet take
/// precedence over SVG attributes.
fn adapt(svg: &str) -> String {
    let rule = |Paint { light: RGBColor(r, g, b), dark }: Paint| {
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = Paint::ALL.map(rule).concat();
    let head =
        svg.find("<svg").and_then(|at| Some(at + svg[at..].find('>')? + 1)).expect("plotters writes SVG");
    format!("{}\n<style>@media(prefers-color-scheme:dark){{{rules}}}</style>{}", &svg[..head], &svg[head..])
}

fn text_style(size_px: i32, paint: Paint, horizontal: HPos) -> TextStyle<'static> {
    ("sans-serif", size_px).into_font().color(&paint.light).pos(Pos::new(horizontal, VPos::Center))
}

/// Returns the style of a label whose text is vertically centred.
pub(crate) fn label_style(paint: Paint, horizontal: HPos) -> TextStyle<'static> {
    text_style(LABEL_PX, paint, horizontal)
}

/// Draws text at a position in pixels. Empty text is omitted.
pub(crate) fn write(page: &Page<'_>, text: &str, at: (i32, i32), style: &TextStyle<'_>) {
    if text.is_empty() {
        return;
    }
    page.draw(&Text::new(text.to_owned(), at, style)).expect("writing cannot fail");
}

/// Draws a line through positions in pixels.
pub(crate) fn draw_path(page: &Page<'_>, pixels: impl Into<Vec<(i32, i32)>>, paint: Paint, width_px: u32) {
    page.draw(&PathElement::new(pixels, paint.light.stroke_width(width_px))).expect("writing cannot fail");
}

/// Draws a filled rectangle. `corners` are the positions of two opposite corners in pixels.
pub(crate) fn draw_box(page: &Page<'_>, corners: [(i32, i32); 2], colour: RGBColor) {
    page.draw(&Rectangle::new(corners, colour.filled())).expect("writing cannot fail");
}

/// Formats a number in a short form, such as `0.25`, `500`, `1.5 k` or `2 M`.
pub(crate) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        1e6..1e9 => (value / 1e6, " M"),
        1e3..1e6 => (value / 1e3, " k"),
        1e-3..1e3 | 0.0 => (value, ""),
        _ => return format!("{value:.1e}"),
    };
    let digits = format!("{scaled:.4}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_page() {
        let svg = page("", "", 100, |_| ());
        assert!(
            svg.contains("[fill=\"#FFFFFF\"]{fill:#0d1117}") && svg.contains("fill=\"#FFFFFF\" stroke"),
            "{svg}"
        );
    }

    #[test]
    fn numbers_are_abbreviated() {
        let texts = [0.0, -0.25, 0.1 + 0.2, 12.0, 500.0, -1_500.0, 4e5, 2e6, 3e9, 2.5e-4].map(short);
        assert_eq!(texts, ["0", "-0.25", "0.3", "12", "500", "-1.5 k", "400 k", "2 M", "3.0e9", "2.5e-4"]);
    }
}
