//! Actions in the units that an environment defines for them.

use super::{Action, ActionSpec, EnvError};

/// Action space of an environment in the units that the environment defines, as in Gymnasium.
///
/// [`Environment::step`](super::Environment::step) takes continuous actions in [-1, 1] and discrete actions as indices
/// from 0, and converts them to these units. A program that acts in another copy of the environment must convert its
/// actions itself.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionSpace {
    /// One of several numbered choices.
    Discrete {
        /// Number of choices.
        n: usize,
        /// Number of the first choice, as defined by the environment.
        start: i64,
    },
    /// One number per dimension.
    Continuous {
        /// Minimum and maximum of each dimension. Both are infinite for a dimension without bounds, whose values are
        /// neither scaled nor clipped.
        bounds: Vec<[f32; 2]>,
    },
}

impl ActionSpace {
    /// Returns the default action space, in which choices start at 0 and the bounds are -1 and 1.
    pub(super) fn of(action: ActionSpec) -> Self {
        match action {
            ActionSpec::Discrete { n } => Self::Discrete { n, start: 0 },
            ActionSpec::Continuous { dim } => Self::Continuous { bounds: vec![[-1.0, 1.0]; dim] },
        }
    }

    /// Converts an agent's action to the environment's units: one value for each dimension, or the number of the
    /// choice.
    ///
    /// # Errors
    /// [`EnvError::WrongAction`] if the kind or size of the action does not match the action space.
    pub fn to_units(&self, action: Action<'_>) -> Result<Vec<f64>, EnvError> {
        match (self, action) {
            (Self::Discrete { n, start }, Action::Discrete(choice)) if choice < *n => {
                Ok(vec![start.saturating_add(choice as i64) as f64])
            }
            (Self::Continuous { bounds }, Action::Continuous(values)) if values.len() == bounds.len() => {
                let scaled = values.iter().zip(bounds).map(|(value, bounds)| scale(*value, *bounds));
                Ok(scaled.map(f64::from).collect())
            }
            _ => Err(EnvError::WrongAction { expected: self.spec(), actual: format!("{action:?}") }),
        }
    }

    fn spec(&self) -> ActionSpec {
        match self {
            Self::Discrete { n, .. } => ActionSpec::Discrete { n: *n },
            Self::Continuous { bounds } => ActionSpec::Continuous { dim: bounds.len() },
        }
    }
}

/// Returns whether a dimension has bounds. In such a dimension, actions are scaled and clipped to the bounds.
pub fn is_bounded([low, high]: [f32; 2]) -> bool {
    low.is_finite() && high.is_finite()
}

/// Clips a value to [-1, 1] and scales it to the bounds of its dimension. Returns the value unchanged if the dimension
/// has no bounds.
pub(super) fn scale(value: f32, [low, high]: [f32; 2]) -> f32 {
    if !is_bounded([low, high]) {
        return value;
    }
    let (low, high) = (f64::from(low), f64::from(high));
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    (middle + half * f64::from(value.clamp(-1.0, 1.0))) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::make;

    #[test]
    fn actions_are_converted_to_the_units_of_the_environment() {
        let bounds = vec![[-1.0, 1.0], [0.0, 4.0], [-2.0, 2.0], [f32::NEG_INFINITY, f32::INFINITY]];
        let space = ActionSpace::Continuous { bounds };
        let units = space.to_units(Action::Continuous(&[0.25, -0.5, 7.0, 7.0])).unwrap();
        assert_eq!(units, [0.25, 1.0, 2.0, 7.0]);
        assert!(space.to_units(Action::Continuous(&[0.0])).is_err());
        let space = ActionSpace::Discrete { n: 3, start: -1 };
        assert_eq!(space.to_units(Action::Discrete(2)).unwrap(), [1.0]);
        let error = space.to_units(Action::Discrete(3)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the action is Discrete(3), but the environment takes Discrete { n: 3 }"
        );
    }

    #[test]
    fn built_in_environments_have_the_spaces_of_gymnasium() {
        let space = |id: &str| make(id).unwrap().action_space();
        assert_eq!(space("CartPole-v1"), ActionSpace::Discrete { n: 2, start: 0 });
        assert_eq!(space("Pendulum-v1"), ActionSpace::Continuous { bounds: vec![[-2.0, 2.0]] });
        assert_eq!(space("PlanarHopper-v0"), ActionSpace::Continuous { bounds: vec![[-1.0, 1.0]; 3] });
    }
}
