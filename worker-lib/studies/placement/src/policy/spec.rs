//! Policies, selected by name.

use std::str::FromStr;

use strum::IntoEnumIterator as _;

use super::{
    ByRule, Clairvoyant, DrainLemons, Las, MATCH_THRESHOLD, Oracle, Order, Placer, Pollux, Rule, Saving,
    best_of, hindsight,
};
use crate::simulation::{Outcome, Scenario, simulate};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::{StudyError, names};

/// Default number of random placements of [`PolicySpec::BestOf`] and [`PolicySpec::Hindsight`].
const COUNT: usize = 20;
/// Maximum number of random placements.
const COUNT_MAX: usize = 10_000;

/// Policy that needs no training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum PolicySpec {
    /// First in, first out, on random GPUs.
    Random,
    /// Best of the given number of random plans: [`best_of`].
    #[strum(to_string = "best-of:{0}")]
    BestOf(usize),
    /// Best of the given number of random simulated runs, chosen in hindsight: [`hindsight`].
    #[strum(to_string = "hindsight:{0}")]
    Hindsight(usize),
    /// First in, first out, on the free GPUs with the lowest ids.
    FirstFit,
    /// First in, first out, on as few nodes as possible.
    BestFit,
    /// First in, first out, in as few racks as possible.
    Pack,
    /// First in, first out, spread over racks and nodes.
    Spread,
    /// First in, first out, avoiding the GPUs that fail most often: [`DrainLemons`].
    DrainLemons,
    /// First in, first out, on the GPUs that have worked longest since their last repair.
    Rested,
    /// First in, first out, on the most reliable GPUs.
    Reliable,
    /// The longest job first, on the most reliable GPUs.
    LongestReliable,
    /// First in, first out, with large jobs on the most reliable GPUs and all others on the least reliable.
    Match,
    /// Job with the least attained service first: [`Las`].
    Las,
    /// Reallocation of GPUs that maximises the harmonic mean of the jobs' speed-ups: [`Pollux`].
    Pollux,
    /// Decisions based on analytic expected times: [`Oracle`].
    Oracle,
    /// Longest job first on the most reliable GPUs, with suspensions that save the work of jobs: [`Saving`].
    Saving,
    /// Choice of GPUs with knowledge of all future failures: [`Clairvoyant`].
    Clairvoyant,
}

impl PolicySpec {
    /// Returns all policies, with the default number of random placements where a policy needs one.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Self::iter().map(|policy| match policy {
            Self::BestOf(_) => Self::BestOf(COUNT),
            Self::Hindsight(_) => Self::Hindsight(COUNT),
            other => other,
        })
    }

    /// Returns the order of the queue if the policy decides only on this order and on the GPUs of each job that fits,
    /// or `None` if it makes further decisions, such as suspending a job or making it wait.
    pub fn picks_in(self) -> Option<Order> {
        match self {
            Self::Random
            | Self::FirstFit
            | Self::BestFit
            | Self::Pack
            | Self::Spread
            | Self::Rested
            | Self::Reliable
            | Self::Match => Some(Order::Arrival),
            Self::LongestReliable => Some(Order::LongestFirst),
            Self::BestOf(_)
            | Self::Hindsight(_)
            | Self::DrainLemons
            | Self::Las
            | Self::Pollux
            | Self::Oracle
            | Self::Saving
            | Self::Clairvoyant => None,
        }
    }

    /// Creates a placer for a scenario; `seed` determines its random choices. [`Self::BestOf`] chooses its plan here.
    ///
    /// # Errors
    /// Fails if the policy needs knowledge of future failures, or if the choice of a plan fails.
    pub fn build(self, scenario: &Scenario, seed: u64) -> Result<Box<dyn Placer>, StudyError> {
        let by_rule = |order, rule| Box::new(ByRule::new(order, rule)) as Box<dyn Placer>;
        Ok(match self {
            Self::Random => {
                by_rule(Order::Arrival, Rule::Random(Box::new(stream(seed, Purpose::Actions, 0))))
            }
            Self::BestOf(count) => Box::new(best_of(scenario, count, seed)?),
            Self::Hindsight(_) | Self::Clairvoyant => {
                return Err(StudyError::field(
                    "policy",
                    self,
                    "a policy that needs no knowledge of future failures",
                ));
            }
            Self::FirstFit => by_rule(Order::Arrival, Rule::FirstFit),
            Self::BestFit => by_rule(Order::Arrival, Rule::BestFit),
            Self::Pack => by_rule(Order::Arrival, Rule::Pack),
            Self::Spread => by_rule(Order::Arrival, Rule::Spread),
            Self::DrainLemons => Box::new(DrainLemons),
            Self::Rested => by_rule(Order::Arrival, Rule::Rested),
            Self::Reliable => by_rule(Order::Arrival, Rule::Reliable),
            Self::LongestReliable => by_rule(Order::LongestFirst, Rule::Reliable),
            Self::Match => by_rule(Order::Arrival, Rule::Match(MATCH_THRESHOLD)),
            Self::Las => Box::new(Las::default()),
            Self::Pollux => Box::new(Pollux::default()),
            Self::Oracle => Box::new(Oracle::default()),
            Self::Saving => Box::new(Saving),
        })
    }

    /// Runs the policy on a scenario; `seed` determines the failures and the policy's random choices.
    ///
    /// # Errors
    /// Returns the errors of [`simulate`].
    pub fn run(self, scenario: &Scenario, seed: u64) -> Result<Outcome, StudyError> {
        match self {
            Self::Hindsight(count) => hindsight(scenario, count, seed),
            Self::Clairvoyant => simulate(scenario, &mut Clairvoyant::new(scenario, seed), seed),
            _ => simulate(scenario, self.build(scenario, seed)?.as_mut(), seed),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = StudyError;

    fn from_str(text: &str) -> Result<Self, StudyError> {
        if let Some((name, count)) = text.split_once(':') {
            let count = count.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
            match (name, count) {
                ("best-of", Some(count)) => return Ok(Self::BestOf(count)),
                ("hindsight", Some(count)) => return Ok(Self::Hindsight(count)),
                _ => {}
            }
        }
        let others = format!("; the number after the colon can be 1 to {COUNT_MAX}");
        names::parse("policy", text, Self::all(), &others)
    }
}

#[cfg(test)]
mod tests {
    use iswitch_study::testing::check_names;

    use super::*;

    #[test]
    fn a_printed_name_parses_to_the_same_value() {
        check_names(PolicySpec::all());
        assert_eq!("best-of:3".parse::<PolicySpec>().unwrap(), PolicySpec::BestOf(3));
        let text = "hindsight:0".parse::<PolicySpec>().unwrap_err().to_string();
        assert!(text.starts_with("policy is hindsight:0, expected one of random, best-of:20"), "{text}");
        assert!("random:3".parse::<PolicySpec>().is_err());
    }
}
