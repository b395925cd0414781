//! Policies without learning, selected by name.

use std::str::FromStr;

use strum::IntoEnumIterator as _;

use super::{Colouring, Drill, Greedy, JoinShortestQueue, MaxWeight, Policy, PowerOfTwo, Random, Spray};
use crate::network::{Decision, Shape};
use crate::value::LengthValue;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::{StudyError, names};

/// Rule that selects the link of a packet behind the head of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Fill {
    /// A random idle link. With this rule, the ratios between the results of the policies agree with those in the
    /// paper.
    #[default]
    Random,
    /// The same rule that the policy uses for the heads of queues.
    Rule,
}

impl Fill {
    pub(super) fn is_random(self, decision: Decision) -> bool {
        self == Self::Random && decision.is_fill
    }
}

impl FromStr for Fill {
    type Err = StudyError;

    fn from_str(text: &str) -> Result<Self, StudyError> {
        let found = Self::iter().find(|fill| fill.to_string() == text);
        found.ok_or_else(|| StudyError::field("fill", text, "random or rule"))
    }
}

/// Policy without learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum PolicySpec {
    /// Random idle link: [`Random`].
    #[strum(to_string = "rand")]
    Random,
    /// Shortest queue: [`JoinShortestQueue`].
    #[strum(to_string = "jsq")]
    JoinShortestQueue,
    /// Better of two random links: [`PowerOfTwo`].
    #[strum(to_string = "po2")]
    PowerOfTwo,
    /// DRILL with the given numbers of samples and of remembered links: [`Drill`].
    #[strum(to_string = "drill:{0}:{1}")]
    Drill(usize, usize),
    /// Packet spraying: [`Spray`].
    Spray,
    /// Backpressure: [`MaxWeight`].
    #[strum(to_string = "maxweight")]
    MaxWeight,
    /// Shortest queue in the intermediate state, which reflects all packets routed earlier in the slot; only a central
    /// controller knows this state.
    CentralJsq,
    /// Like `CentralJsq`, but the packets that leave the network in this slot are not counted.
    #[strum(to_string = "central-jsq-exits")]
    CentralJsqExitsFirst,
    /// Edge colouring: [`Colouring`].
    Colouring,
}

impl PolicySpec {
    /// Returns all policies; DRILL uses two samples and remembers one link.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Self::iter().map(|policy| match policy {
            Self::Drill(..) => Self::Drill(2, 1),
            other => other,
        })
    }

    /// Creates a new instance of the policy. `seed` is the seed of its random choices.
    pub fn build(self, shape: Shape, fill: Fill, seed: u64) -> Box<dyn Policy> {
        let rng = stream(seed, Purpose::Actions, 0);
        let central = |exits_first, rng| {
            Box::new(Greedy::new(shape, LengthValue, exits_first, vec![rng])) as Box<dyn Policy>
        };
        match self {
            Self::Random => Box::new(Random::new(shape, rng)),
            Self::JoinShortestQueue => Box::new(JoinShortestQueue::new(shape, fill, rng)),
            Self::PowerOfTwo => Box::new(PowerOfTwo::new(shape, fill, rng)),
            Self::Drill(samples, memory) => Box::new(Drill::new(shape, samples, memory, fill, rng)),
            Self::Spray => Box::new(Spray::new(shape)),
            Self::MaxWeight => Box::new(MaxWeight::new(shape, rng)),
            Self::CentralJsq => central(false, rng),
            Self::CentralJsqExitsFirst => central(true, rng),
            Self::Colouring => Box::new(Colouring::new(shape, rng)),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = StudyError;

    fn from_str(text: &str) -> Result<Self, StudyError> {
        let drill = text.strip_prefix("drill:").and_then(|numbers| numbers.split_once(':'));
        let numbers = drill.and_then(|(d, m)| Some((d.parse().ok()?, m.parse().ok()?)));
        if let Some((samples, memory)) = numbers.filter(|(samples, _)| *samples > 0) {
            return Ok(Self::Drill(samples, memory));
        }
        names::parse("policy", text, Self::all(), ", or drill:D:M")
    }
}

#[cfg(test)]
mod tests {
    use iswitch_study::testing::check_names;

    use super::*;

    #[test]
    fn a_printed_name_parses_to_the_same_value() {
        check_names(PolicySpec::all());
        assert_eq!("drill:3:2".parse::<PolicySpec>().unwrap(), PolicySpec::Drill(3, 2));
        let text = "all".parse::<Fill>().unwrap_err().to_string();
        assert_eq!(text, "fill is all, expected random or rule");
        let text = "drill:0:1".parse::<PolicySpec>().unwrap_err().to_string();
        assert!(text.starts_with("policy is drill:0:1, expected one of rand, jsq, po2"), "{text}");
    }
}
