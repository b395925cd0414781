//! Servers that actors write to.

use std::fmt;

/// Kind of replay server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `replayd`.
    Own,
    /// DeepMind's Reverb, through its own protocol.
    Reverb,
}

impl Kind {
    /// Returns the part of a file name that identifies the kind.
    pub fn slug(self) -> &'static str {
        match self {
            Self::Own => "replayd",
            Self::Reverb => "reverb",
        }
    }
}

/// Kind of server, and number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Kind of the servers.
    pub kind: Kind,
    /// Number of shards.
    pub shards: usize,
}

impl Contender {
    /// Returns a contender for each kind of server and each number of shards. If Reverb is missing, only `replayd` is
    /// included.
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
