//! Where actors write to.

use std::fmt;

/// Whose servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `replayd`.
    Own,
    /// DeepMind's Reverb, through its own protocol.
    Reverb,
}

impl Kind {
    /// For files.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Own => "replayd",
            Self::Reverb => "reverb",
        }
    }
}

/// So many shards of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Whose.
    pub kind: Kind,
    /// How many.
    pub shards: usize,
}

impl Contender {
    /// Each number of shards of both kinds, or only of ours.
    pub fn all(shards: &[usize], has_reverb: bool) -> Vec<Self> {
        let kinds = [Some(Kind::Own), has_reverb.then_some(Kind::Reverb)];
        let of = |shards: &usize| {
            let shards = *shards;
            kinds.into_iter().flatten().map(move |kind| Self { kind, shards })
        };
        shards.iter().flat_map(of).collect()
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Own => "replayd",
            Kind::Reverb => "Reverb",
        };
        let plural = if self.shards == 1 { "" } else { "s" };
        write!(f, "{name}, {} shard{plural}", self.shards)
    }
}
