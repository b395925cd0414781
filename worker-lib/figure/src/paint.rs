//! Colours that adapt to light and dark pages.

use plotters::style::RGBColor;

/// Colour on a light page, and its replacement on a dark page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    pub(crate) light: RGBColor,
    pub(crate) dark: &'static str,
}

impl Paint {
    pub(crate) const PAGE: Self = Self { light: RGBColor(0xff, 0xff, 0xff), dark: "#0d1117" };
    pub(crate) const GRID: Self = Self { light: RGBColor(0xd0, 0xd7, 0xde), dark: "#30363d" };
    /// Colour of text.
    pub const INK: Self = Self { light: RGBColor(0x1f, 0x23, 0x28), dark: "#e6edf3" };
    /// Red.
    pub const RED: Self = Self { light: RGBColor(0xcf, 0x22, 0x2e), dark: "#f85149" };
    /// Blue.
    pub const BLUE: Self = Self { light: RGBColor(0x09, 0x69, 0xda), dark: "#58a6ff" };
    /// Grey.
    pub const GREY: Self = Self { light: RGBColor(0x6e, 0x77, 0x81), dark: "#8b949e" };
    /// Purple.
    pub const PURPLE: Self = Self { light: RGBColor(0x82, 0x50, 0xdf), dark: "#bc8cff" };
    /// Yellow.
    pub const YELLOW: Self = Self { light: RGBColor(0xbf, 0x87, 0x00), dark: "#d29922" };
    /// Green.
    pub const GREEN: Self = Self { light: RGBColor(0x1a, 0x7f, 0x37), dark: "#3fb950" };

    pub(crate) const ALL: [Self; 9] = [
        Self::PAGE,
        Self::INK,
        Self::GRID,
        Self::RED,
        Self::BLUE,
        Self::GREY,
        Self::PURPLE,
        Self::YELLOW,
        Self::GREEN,
    ];
}
