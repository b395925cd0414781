//! Policies by name.

use std::fmt;
use std::str::FromStr;

use super::{Aalo, Bssi, ByKey, JobBssi, Key, Policy, ShafieeGhaderi};
use crate::CoflowError;

/// A policy that needs no training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySpec {
    /// Equal shares.
    Fair,
    /// Coflows first in, first out.
    Fifo,
    /// Jobs first in, first out.
    FifoJob,
    /// Least coflow first.
    Lcf,
    /// Smallest effective bottleneck first, with MADD: Varys.
    Sebf,
    /// Sincronia's order.
    Bssi,
    /// Aalo: sizes are not known.
    Aalo,
    /// Jobs by the shortest remaining critical path.
    JobSrpt,
    /// Jobs by what they need alone.
    JobSebf,
    /// Jobs by Sincronia's order.
    JobBssi,
    /// Jobs in groups, their coflows merged with random delays.
    ShafieeGhaderi,
}

impl PolicySpec {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Fair,
        Self::Fifo,
        Self::FifoJob,
        Self::Lcf,
        Self::Sebf,
        Self::Bssi,
        Self::Aalo,
        Self::JobSrpt,
        Self::JobSebf,
        Self::JobBssi,
        Self::ShafieeGhaderi,
    ];

    /// A fresh policy for ports of so many bytes a second.
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

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fair => "fair",
            Self::Fifo => "fifo",
            Self::FifoJob => "fifo-job",
            Self::Lcf => "lcf",
            Self::Sebf => "sebf",
            Self::Bssi => "bssi",
            Self::Aalo => "aalo",
            Self::JobSrpt => "job-srpt",
            Self::JobSebf => "job-sebf",
            Self::JobBssi => "job-bssi",
            Self::ShafieeGhaderi => "shafiee-ghaderi",
        })
    }
}

impl FromStr for PolicySpec {
    type Err = CoflowError;

    fn from_str(text: &str) -> Result<Self, CoflowError> {
        let found = Self::ALL.into_iter().find(|policy| policy.to_string() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|policy| policy.to_string());
            CoflowError::field("policy", text, format!("one of {}", names.join(", ")))
        })
    }
}
