//! Policies by name.

use std::fmt;
use std::str::FromStr;

use super::{Colouring, Drill, Greedy, JoinShortestQueue, MaxWeight, Policy, PowerOfTwo, Random, Spray};
use crate::RoutingError;
use crate::network::{Decision, Shape};
use crate::value::LengthValue;
use iswitch_learn::algorithms::streams::{Purpose, stream};

/// How packets that are not the heads of their queues find a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Any link that is left: what reproduces the paper's ratios.
    #[default]
    Random,
    /// As heads do.
    Rule,
}

impl Fill {
    pub(super) fn is_random(self, decision: Decision) -> bool {
        self == Self::Random && decision.is_fill
    }
}

impl FromStr for Fill {
    type Err = RoutingError;

    fn from_str(text: &str) -> Result<Self, RoutingError> {
        match text {
            "random" => Ok(Self::Random),
            "rule" => Ok(Self::Rule),
            _ => Err(RoutingError::field("fill", text, "random or rule")),
        }
    }
}

/// A policy that needs no training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySpec {
    /// [`Random`]
    Random,
    /// [`JoinShortestQueue`]
    JoinShortestQueue,
    /// [`PowerOfTwo`]
    PowerOfTwo,
    /// [`Drill`] of so many samples and so much memory.
    Drill(usize, usize),
    /// [`Spray`]
    Spray,
    /// [`MaxWeight`]
    MaxWeight,
    /// The shortest queue in the intermediate state: a controller that knows where packets have gone in this slot.
    CentralJsq,
    /// The same after the exits of the slot.
    CentralJsqExitsFirst,
    /// [`Colouring`]
    Colouring,
}

impl PolicySpec {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Random,
        Self::JoinShortestQueue,
        Self::PowerOfTwo,
        Self::Drill(2, 1),
        Self::Spray,
        Self::MaxWeight,
        Self::CentralJsq,
        Self::CentralJsqExitsFirst,
        Self::Colouring,
    ];

    /// A fresh policy with the draws of `seed`.
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

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("rand"),
            Self::JoinShortestQueue => f.write_str("jsq"),
            Self::PowerOfTwo => f.write_str("po2"),
            Self::Drill(samples, memory) => write!(f, "drill:{samples}:{memory}"),
            Self::Spray => f.write_str("spray"),
            Self::MaxWeight => f.write_str("maxweight"),
            Self::CentralJsq => f.write_str("central-jsq"),
            Self::CentralJsqExitsFirst => f.write_str("central-jsq-exits"),
            Self::Colouring => f.write_str("colouring"),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = RoutingError;

    fn from_str(text: &str) -> Result<Self, RoutingError> {
        let drill = text.strip_prefix("drill:").and_then(|numbers| numbers.split_once(':'));
        let numbers = drill.and_then(|(d, m)| Some((d.parse().ok()?, m.parse().ok()?)));
        if let Some((samples, memory)) = numbers.filter(|(samples, _)| *samples > 0) {
            return Ok(Self::Drill(samples, memory));
        }
        let found = Self::ALL.into_iter().find(|policy| policy.to_string() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|policy| policy.to_string());
            RoutingError::field("policy", text, format!("one of {}, or drill:D:M", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for policy in PolicySpec::ALL {
            assert_eq!(policy.to_string().parse::<PolicySpec>().unwrap(), policy);
        }
        assert_eq!("drill:3:2".parse::<PolicySpec>().unwrap(), PolicySpec::Drill(3, 2));
        let text = "drill:0:1".parse::<PolicySpec>().unwrap_err().to_string();
        assert!(text.starts_with("policy is drill:0:1, expected one of rand, jsq, po2"), "{text}");
    }
}
