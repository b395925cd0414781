//! Colours that adapt to light and dark pages. They come from the Okabe-Ito palette, whose colours people with colour
//! blindness can distinguish. On white pages, a colour is darkened if text in it would have too little contrast.

use plotters::style::RGBColor;

/// A colour on a light page, and its replacement on a dark page.
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
    /// Vermilion.
    pub const RED: Self = Self { light: RGBColor(0xc4, 0x4e, 0x00), dark: "#f58a4b" };
    /// Blue.
    pub const BLUE: Self = Self { light: RGBColor(0x00, 0x72, 0xb2), dark: "#56b4e9" };
    /// Grey.
    pub const GREY: Self = Self { light: RGBColor(0x6e, 0x77, 0x81), dark: "#8b949e" };
    /// Reddish purple.
    pub const PURPLE: Self = Self { light: RGBColor(0xb0, 0x4f, 0x88), dark: "#e29bc6" };
    /// Orange.
    pub const YELLOW: Self = Self { light: RGBColor(0xb8, 0x86, 0x00), dark: "#e6b422" };
    /// Bluish green.
    pub const GREEN: Self = Self { light: RGBColor(0x00, 0x8a, 0x64), dark: "#2bc495" };

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
