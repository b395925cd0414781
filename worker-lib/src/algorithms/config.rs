//! Checks of hyper-parameters.

use std::fmt::Debug;

use serde::Serialize;

use super::TrainError;

/// Collects what is out of range.
#[derive(Debug, Default)]
pub(super) struct Checks {
    first: Option<String>,
}

impl Checks {
    fn expect(&mut self, fine: bool, name: &str, value: &dyn Debug, expected: &str) -> &mut Self {
        if !fine && self.first.is_none() {
            self.first = Some(format!("{name} is {value:?}, expected {expected}"));
        }
        self
    }

    pub(super) fn positive(&mut self, name: &str, value: u64) -> &mut Self {
        self.expect(value > 0, name, &value, "at least 1")
    }

    pub(super) fn above_zero(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect(value.is_finite() && value > 0.0, name, &value, "a number above 0")
    }

    pub(super) fn not_negative(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect(value.is_finite() && value >= 0.0, name, &value, "a number of at least 0")
    }

    pub(super) fn unit(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect((0.0..=1.0).contains(&value), name, &value, "0 to 1")
    }

    pub(super) fn finite(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect(value.is_finite(), name, &value, "a number")
    }

    pub(super) fn widths(&mut self, name: &str, widths: &[usize]) -> &mut Self {
        let fine = !widths.is_empty() && !widths.contains(&0);
        self.expect(fine, name, &widths, "at least one width, none of them 0")
    }

    /// The first that was out of range.
    pub(super) fn result(&self) -> Result<(), TrainError> {
        self.first.clone().map_or(Ok(()), |reason| Err(TrainError::Config(reason)))
    }
}

/// Hyper-parameters as one line.
pub(super) fn to_json(config: &impl Serialize) -> String {
    serde_json::to_string(config).expect("hyper-parameters are plain data")
}
