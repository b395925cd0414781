//! Median and range of a measured quantity over several runs.

use serde_json::{Value, json};

/// Median, minimum and maximum of several runs.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub greatest: f64,
}

impl Spread {
    /// Returns the median, the minimum and the maximum of the values.
    ///
    /// # Panics
    /// Panics if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self { median: values[values.len() / 2], least: values[0], greatest: values[values.len() - 1] }
    }

    /// Returns the minimum and the maximum.
    pub fn ends(self) -> (f64, f64) {
        (self.least, self.greatest)
    }

    /// Returns the spread multiplied by a factor, for example to convert its unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        let Self { median, least, greatest } = self;
        Self { median: median * by, least: least * by, greatest: greatest * by }
    }

    /// Formats the spread, such as `3.1 (2.9 to 3.4)`, with the given number of decimals.
    pub fn text(self, digits: usize) -> String {
        let Self { median, least, greatest } = self;
        format!("{median:.digits$} ({least:.digits$} to {greatest:.digits$})")
    }

    /// Returns the median, the minimum and the maximum as JSON.
    pub fn json(self) -> Value {
        json!({ "median": self.median, "least": self.least, "greatest": self.greatest })
    }
}
