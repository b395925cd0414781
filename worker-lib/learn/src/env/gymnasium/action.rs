//! Encoding of actions for Gymnasium environments.

use super::message::Actions;
use crate::env::action_space::scale;
use crate::env::{Action, ActionSpec, EnvError};

impl Actions {
    pub(super) fn spec(&self) -> ActionSpec {
        match self {
            Self::Discrete(n) => ActionSpec::Discrete { n: *n },
            Self::Continuous(bounds) => ActionSpec::Continuous { dim: bounds.len() },
        }
    }

    /// Encodes an action for the pipe to the child process. In a dimension with bounds, values from -1 to 1 are scaled
    /// to the bounds; in a dimension without bounds, the value is passed unchanged.
    pub(super) fn encode(&self, action: Action<'_>) -> Result<Vec<u8>, EnvError> {
        match (self, action) {
            (Self::Discrete(n), Action::Discrete(choice)) if choice < *n => {
                Ok((choice as u32).to_le_bytes().to_vec())
            }
            (Self::Continuous(bounds), Action::Continuous(values)) if values.len() == bounds.len() => {
                let scaled = values.iter().zip(bounds).map(|(value, bounds)| scale(*value, *bounds));
                Ok(scaled.flat_map(f32::to_le_bytes).collect())
            }
            _ => Err(EnvError::WrongAction { expected: self.spec(), actual: format!("{action:?}") }),
        }
    }

    /// Decodes a sequence of encoded actions into numbers.
    pub(super) fn numbers(&self, encoded: &[u8]) -> Vec<f64> {
        let words = encoded.as_chunks().0.iter();
        match self {
            Self::Discrete(_) => words.map(|word| f64::from(u32::from_le_bytes(*word))).collect(),
            Self::Continuous(_) => words.map(|word| f64::from(f32::from_le_bytes(*word))).collect(),
        }
    }

    /// Encodes the numbers that [`Self::numbers`] returned.
    pub(super) fn encode_numbers(&self, numbers: &[f64]) -> Vec<u8> {
        let numbers = numbers.iter();
        match self {
            Self::Discrete(_) => numbers.flat_map(|number| (*number as u32).to_le_bytes()).collect(),
            Self::Continuous(_) => numbers.flat_map(|number| (*number as f32).to_le_bytes()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_clipped_and_scaled_to_the_bounds() {
        let bounds = vec![[-1.0, 1.0], [0.0, 4.0], [-1.0, 1.0], [f32::NEG_INFINITY, f32::INFINITY]];
        let actions = Actions::Continuous(bounds);
        let encoded = actions.encode(Action::Continuous(&[1e-30, -0.5, 7.0, 7.0])).unwrap();
        let numbers = actions.numbers(&encoded);
        assert_eq!(numbers, [f64::from(1e-30_f32), 1.0, 1.0, 7.0]);
        assert_eq!(actions.encode_numbers(&numbers), encoded);
        assert_eq!(actions.spec(), ActionSpec::Continuous { dim: 4 });
    }

    #[test]
    fn discrete_actions_are_passed_unchanged() {
        let actions = Actions::Discrete(3);
        let encoded = actions.encode(Action::Discrete(2)).unwrap();
        assert_eq!(encoded, [2, 0, 0, 0]);
        assert_eq!(actions.encode_numbers(&actions.numbers(&encoded)), encoded);
    }

    #[test]
    fn actions_of_another_kind_or_size_are_refused() {
        let refused = |actions: Actions, action| actions.encode(action).unwrap_err().to_string();
        let choices = refused(Actions::Discrete(3), Action::Discrete(3));
        assert_eq!(choices, "the action is Discrete(3), but the environment takes Discrete { n: 3 }");
        let dims = refused(Actions::Continuous(vec![[-1.0, 1.0]]), Action::Continuous(&[0.0, 0.0]));
        assert_eq!(
            dims,
            "the action is Continuous([0.0, 0.0]), but the environment takes Continuous { dim: 1 }"
        );
    }
}
