//! Pages of figures, as SVG that is readable on a light and on a dark page.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH_PX: u32 = 840;
/// Of titles.
pub(crate) const TITLE_PX: i32 = 16;
/// Of what stands beside lines, bars and axes.
pub(crate) const LABEL_PX: i32 = 13;

/// A colour on a light page, and the one that takes its place on a dark page.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    pub(crate) light: RGBColor,
    dark: &'static str,
}

const PAGE: Paint = Paint { light: RGBColor(0xff, 0xff, 0xff), dark: "#0d1117" };
pub(crate) const INK: Paint = Paint { light: RGBColor(0x1f, 0x23, 0x28), dark: "#e6edf3" };
pub(crate) const GRID: Paint = Paint { light: RGBColor(0xd0, 0xd7, 0xde), dark: "#30363d" };
pub(crate) const RED: Paint = Paint { light: RGBColor(0xcf, 0x22, 0x2e), dark: "#f85149" };
pub(crate) const BLUE: Paint = Paint { light: RGBColor(0x09, 0x69, 0xda), dark: "#58a6ff" };
pub(crate) const GREY: Paint = Paint { light: RGBColor(0x6e, 0x77, 0x81), dark: "#8b949e" };
pub(crate) const PURPLE: Paint = Paint { light: RGBColor(0x82, 0x50, 0xdf), dark: "#bc8cff" };
pub(crate) const YELLOW: Paint = Paint { light: RGBColor(0xbf, 0x87, 0x00), dark: "#d29922" };
pub(crate) const GREEN: Paint = Paint { light: RGBColor(0x1a, 0x7f, 0x37), dark: "#3fb950" };
const PAINTS: [Paint; 9] = [PAGE, INK, GRID, RED, BLUE, GREY, PURPLE, YELLOW, GREEN];

/// What is drawn on.
pub(crate) type Page<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws on a page of its own; nothing can fail, since a string takes all.
pub(crate) fn page(height_px: u32, draw: impl FnOnce(&Page<'_>)) -> String {
    let mut svg = String::new();
    {
        let page = SVGBackend::with_string(&mut svg, (WIDTH_PX, height_px)).into_drawing_area();
        page.fill(&PAGE.light).expect("a string takes all");
        draw(&page);
        page.present().expect("a string takes all");
    }
    adapt(&svg)
}

/// Lets the page's colours follow the reader's: rules of a style sheet win over attributes.
fn adapt(svg: &str) -> String {
    let rule = |Paint { light: RGBColor(r, g, b), dark }: Paint| {
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = PAINTS.map(rule).concat();
    let head =
        svg.find("<svg").and_then(|at| Some(at + svg[at..].find('>')? + 1)).expect("plotters writes SVG");
    format!("{}\n<style>@media(prefers-color-scheme:dark){{{rules}}}</style>{}", &svg[..head], &svg[head..])
}

/// Centred vertically.
pub(crate) fn text_style(size_px: i32, colour: RGBColor, horizontal: HPos) -> TextStyle<'static> {
    ("sans-serif", size_px).into_font().color(&colour).pos(Pos::new(horizontal, VPos::Center))
}

/// Text at a place in pixels.
pub(crate) fn write(page: &Page<'_>, text: &str, at: (i32, i32), style: &TextStyle<'_>) {
    page.draw(&Text::new(text.to_owned(), at, style)).expect("a string takes all");
}

/// Writes beside the end of each line what it is, one below the other.
pub(crate) fn label_ends<Name: AsRef<str>>(page: &Page<'_>, mut ends: Vec<((i32, i32), Name, RGBColor)>) {
    ends.sort_by_key(|((_, y), _, _)| *y);
    let mut free = i32::MIN;
    for ((x, y), name, colour) in ends {
        let y = y.max(free);
        free = y + LABEL_PX + 4;
        write(page, name.as_ref(), (x + 12, y), &text_style(LABEL_PX, colour, HPos::Left));
    }
}
