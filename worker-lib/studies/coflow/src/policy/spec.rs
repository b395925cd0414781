//! Policies that do not learn, selected by name.

use std::str::FromStr;

use strum::IntoEnumIterator as _;

use super::{Aalo, Bssi, ByKey, JobBssi, Key, Policy, ShafieeGhaderi};
use iswitch_study::{StudyError, names};

/// Policy that does not learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum PolicySpec {
    /// Max-min fair rates of all flows.
    Fair,
    /// Coflows first in, first out.
    Fifo,
    /// Jobs first in, first out.
    FifoJob,
    /// Least coflow first.
    Lcf,
    /// Smallest effective bottleneck first, with MADD rates: Varys.
    Sebf,
    /// Coflows in Sincronia's order, with greedy rates.
    Bssi,
    /// Aalo, which does not use the sizes of coflows: D-CLAS with strict priority between queues.
    Aalo,
    /// Jobs in ascending order of their remaining critical path.
    JobSrpt,
    /// Jobs in ascending order of their remaining critical path or, if longer, their remaining time at their busiest
    /// port.
    JobSebf,
    /// Jobs in Sincronia's order.
    JobBssi,
    /// Delay and merge: jobs in groups, with their coflows ordered by merged schedules with random delays.
    ShafieeGhaderi,
}

impl PolicySpec {
    /// Returns all policies.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Self::iter()
    }

    /// Creates a fresh instance of the policy. `capacity` is the capacity of a port, in bytes per second.
    pub fn build(self, capacity: f64) -> Box<dyn Policy> {
        let by_key = |key| Box::new(ByKey::new(key)) as Box<dyn Policy>;
        match self {
            Self::Fair => by_key(Key::Fair),
            Self::Fifo => by_key(Key::Fifo),
            Self::FifoJob => by_key(Key::FifoJob),
            Self::Lcf => by_key(Key::Size),
            Self::Sebf => by_key(Key::Bottleneck),
            Self::Bssi => Box::new(Bssi),
            Self::Aalo => Box::new(Aalo::new(capacity)),
            Self::JobSrpt => by_key(Key::JobPath),
            Self::JobSebf => by_key(Key::JobBottleneck),
            Self::JobBssi => Box::new(JobBssi),
            Self::ShafieeGhaderi => Box::new(ShafieeGhaderi::new(1)),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = StudyError;

    fn from_str(text: &str) -> Result<Self, StudyError> {
        names::parse("policy", text, Self::all(), "")
    }
}

#[cfg(test)]
mod tests {
    use iswitch_study::testing::check_names;

    use super::*;

    #[test]
    fn a_printed_name_parses_to_the_same_value() {
        check_names(PolicySpec::all());
        let text = "job_sebf".parse::<PolicySpec>().unwrap_err().to_string();
        let names =
            "fair, fifo, fifo-job, lcf, sebf, bssi, aalo, job-srpt, job-sebf, job-bssi, shafiee-ghaderi";
        assert_eq!(text, format!("policy is job_sebf, expected one of {names}"));
    }
}
