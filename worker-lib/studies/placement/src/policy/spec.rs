//! Policies by name.

use std::fmt;
use std::str::FromStr;

use super::{ByRule, Las, MATCH_THRESHOLD, Oracle, Order, Placer, Pollux, Rule, Saving, best_of, hindsight};
use crate::PlacementError;
use crate::simulation::{Outcome, Scenario, simulate};
use iswitch_learn::algorithms::streams::{Purpose, stream};

/// Placements that are tried at most.
const COUNT_MAX: usize = 10_000;

/// A policy that needs no training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySpec {
    /// First in, first out, on any GPUs.
    Random,
    /// The best of so many random plans: [`best_of`].
    BestOf(usize),
    /// The least makespan of so many random courses, with hindsight: [`hindsight`].
    Hindsight(usize),
    /// First in, first out, on the first GPUs.
    FirstFit,
    /// First in, first out, on as few nodes as possible.
    BestFit,
    /// First in, first out, on the most reliable GPUs.
    Reliable,
    /// The longest first, on the most reliable GPUs.
    LongestReliable,
    /// First in, first out, big jobs on the most reliable GPUs and others on the least.
    Match,
    /// [`Las`]
    Las,
    /// [`Pollux`]
    Pollux,
    /// [`Oracle`]
    Oracle,
    /// [`Saving`]
    Saving,
}

impl PolicySpec {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Random,
        Self::BestOf(20),
        Self::Hindsight(20),
        Self::FirstFit,
        Self::BestFit,
        Self::Reliable,
        Self::LongestReliable,
        Self::Match,
        Self::Las,
        Self::Pollux,
        Self::Oracle,
        Self::Saving,
    ];

    /// A fresh placer for a scenario, with the draws of `seed`. [`Self::BestOf`] chooses here.
    ///
    /// # Errors
    /// If it decides only with hindsight, or its choice fails.
    pub fn build(self, scenario: &Scenario, seed: u64) -> Result<Box<dyn Placer>, PlacementError> {
        let by_rule = |order, rule| Box::new(ByRule::new(order, rule)) as Box<dyn Placer>;
        Ok(match self {
            Self::Random => {
                by_rule(Order::Arrival, Rule::Random(Box::new(stream(seed, Purpose::Actions, 0))))
            }
            Self::BestOf(count) => Box::new(best_of(scenario, count, seed)?),
            Self::Hindsight(_) => {
                return Err(PlacementError::field("policy", self, "one that decides before GPUs fail"));
            }
            Self::FirstFit => by_rule(Order::Arrival, Rule::FirstFit),
            Self::BestFit => by_rule(Order::Arrival, Rule::BestFit),
            Self::Reliable => by_rule(Order::Arrival, Rule::Reliable),
            Self::LongestReliable => by_rule(Order::LongestFirst, Rule::Reliable),
            Self::Match => by_rule(Order::Arrival, Rule::Match(MATCH_THRESHOLD)),
            Self::Las => Box::new(Las::default()),
            Self::Pollux => Box::new(Pollux::default()),
            Self::Oracle => Box::new(Oracle::default()),
            Self::Saving => Box::new(Saving),
        })
    }

    /// What it makes of a scenario; `seed` decides when GPUs fail, and its draws.
    ///
    /// # Errors
    /// As [`simulate`].
    pub fn run(self, scenario: &Scenario, seed: u64) -> Result<Outcome, PlacementError> {
        match self {
            Self::Hindsight(count) => hindsight(scenario, count, seed),
            _ => simulate(scenario, self.build(scenario, seed)?.as_mut(), seed),
        }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::BestOf(count) => write!(f, "best-of:{count}"),
            Self::Hindsight(count) => write!(f, "hindsight:{count}"),
            Self::FirstFit => f.write_str("first-fit"),
            Self::BestFit => f.write_str("best-fit"),
            Self::Reliable => f.write_str("reliable"),
            Self::LongestReliable => f.write_str("longest-reliable"),
            Self::Match => f.write_str("match"),
            Self::Las => f.write_str("las"),
            Self::Pollux => f.write_str("pollux"),
            Self::Oracle => f.write_str("oracle"),
            Self::Saving => f.write_str("saving"),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Self, PlacementError> {
        if let Some((name, count)) = text.split_once(':') {
            let count = count.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
            match (name, count) {
                ("best-of", Some(count)) => return Ok(Self::BestOf(count)),
                ("hindsight", Some(count)) => return Ok(Self::Hindsight(count)),
                _ => {}
            }
        }
        let found = Self::ALL.into_iter().find(|policy| policy.to_string() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|policy| policy.to_string()).join(", ");
            let expected = format!("one of {names}; 20 may be any number from 1 to {COUNT_MAX}");
            PlacementError::field("policy", text, expected)
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
        assert_eq!("best-of:3".parse::<PolicySpec>().unwrap(), PolicySpec::BestOf(3));
        let text = "hindsight:0".parse::<PolicySpec>().unwrap_err().to_string();
        assert!(text.starts_with("policy is hindsight:0, expected one of random, best-of:20"), "{text}");
        assert!("random:3".parse::<PolicySpec>().is_err());
    }
}
