//! Range checks of hyper-parameters.

use std::fmt::Debug;

use serde::Serialize;

use super::TrainError;
use super::experience::ExperienceOptions;

/// Sequence of range checks. It records the first value that is out of range.
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

    /// Checks that a width or a count is between 1 and `max`, both included.
    pub(super) fn one_to(&mut self, name: &str, value: u64, max: u64) -> &mut Self {
        self.expect((1..=max).contains(&value), name, &value, &format!("1 to {max}"))
    }

    /// Checks the sizes of a run that learns from replayed transitions.
    pub(super) fn experience(&mut self, options: &ExperienceOptions, total_steps: u64) -> &mut Self {
        self.positive("total_steps", total_steps)
            .learning_starts(options.schedule.learning_starts, total_steps)
            .positive("buffer_size", options.buffer_size as u64)
            .positive("batch_size", options.batch_size as u64)
            .positive("train_every", options.schedule.train_every)
    }

    /// Checks that learning starts before training ends.
    fn learning_starts(&mut self, learning_starts: u64, total_steps: u64) -> &mut Self {
        let expected = format!("fewer than the {total_steps} steps of the whole run");
        self.expect(learning_starts < total_steps, "learning_starts", &learning_starts, &expected)
    }

    pub(super) fn above_zero(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect(value.is_finite() && value > 0.0, name, &value, "a number above 0")
    }

    pub(super) fn not_negative(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect(value.is_finite() && value >= 0.0, name, &value, "a number >= 0")
    }

    pub(super) fn unit(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect((0.0..=1.0).contains(&value), name, &value, "0 to 1")
    }

    /// Checks a discount factor that must be below 1, so that the horizon is finite.
    pub(super) fn below_one(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect((0.0..1.0).contains(&value), name, &value, "at least 0 and below 1, for a finite horizon")
    }

    pub(super) fn finite(&mut self, name: &str, value: f32) -> &mut Self {
        self.expect(value.is_finite(), name, &value, "a number")
    }

    pub(super) fn widths(&mut self, name: &str, widths: &[usize]) -> &mut Self {
        let fine = !widths.is_empty() && !widths.contains(&0);
        self.expect(fine, name, &widths, "at least one width, none of them 0")
    }

    /// Returns the first violation as an error.
    pub(super) fn result(&self) -> Result<(), TrainError> {
        self.first.clone().map_or(Ok(()), |reason| Err(TrainError::Config(reason)))
    }
}

/// Returns the learning rate after a fraction `part` (0 to 1) of the run has elapsed: `initial` or, if `is_annealed` is
/// set, a value that decays linearly to 0.
pub(super) fn annealed(initial: f32, is_annealed: bool, part: f64) -> f32 {
    let factor = if is_annealed { (1.0 - part).max(0.0) } else { 1.0 };
    (f64::from(initial) * factor) as f32
}

/// Serialises hyper-parameters as one line of JSON.
pub(super) fn to_json(config: &impl Serialize) -> String {
    serde_json::to_string(config).expect("hyper-parameters serialise to JSON")
}

/// Defines the hyper-parameters of an algorithm. The doc comments of the fields are also the descriptions shown to
/// users.
macro_rules! hyper_parameters {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $($(#[doc = $line:literal])+ pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[doc = $line])+ pub $field: $type,)*
        }

        impl $name {
            /// Names and descriptions of the hyper-parameters.
            pub const DESCRIPTIONS: &[(&str, &str)] = &[$((stringify!($field), concat!($($line),+))),*];
        }
    };
}

pub(super) use hyper_parameters;

#[cfg(test)]
mod tests {
    use crate::algorithms::ddpg::DdpgConfig;
    use crate::algorithms::dqn::DqnConfig;
    use crate::algorithms::trainer::Algorithm;

    #[test]
    fn a_run_that_would_end_before_learning_begins_is_refused() {
        let dqn =
            DqnConfig { total_steps: 8_000, learning_starts: 8_000, ..DqnConfig::preset("CartPole-v1") };
        let expected = "learning_starts is 8000, expected fewer than the 8000 steps of the whole run";
        assert!(dqn.check().unwrap_err().to_string().contains(expected));
        assert!(DqnConfig { learning_starts: 7_999, ..dqn }.check().is_ok());
        let ddpg = DdpgConfig { total_steps: 500, ..DdpgConfig::preset("Pendulum-v1") };
        assert!(ddpg.check().unwrap_err().to_string().contains("learning_starts is 1000"));
    }
}
