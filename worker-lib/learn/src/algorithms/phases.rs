//! Where the time of an iteration goes: spans of `tracing` around its parts, at level TRACE. Where one lies inside
//! another its time is not the outer one's. Without a subscriber that wants them one costs a load.

use tracing::Level;
use tracing::span::EnteredSpan;

/// Target of the spans; their names are those of [`Phase::name`].
pub const TARGET: &str = "iswitch::phase";

/// A part of an iteration. They stand in the order in which an iteration goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// Choosing actions, and keeping what came of them.
    Act,
    /// The environment itself.
    Environment,
    /// Drawing a batch, or putting one together.
    Sample,
    /// The networks forward, and the loss.
    Forward,
    /// The networks backward.
    Backward,
    /// The sum over workers.
    Aggregation,
    /// Applying a gradient.
    Update,
}

impl Phase {
    /// In lower case.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The phase lasts as long as what this gives.
    pub fn enter(self) -> EnteredSpan {
        macro_rules! span {
            ($name:literal) => {
                tracing::span!(target: TARGET, Level::TRACE, $name)
            };
        }
        let span = match self {
            Self::Act => span!("act"),
            Self::Environment => span!("environment"),
            Self::Sample => span!("sample"),
            Self::Forward => span!("forward"),
            Self::Backward => span!("backward"),
            Self::Aggregation => span!("aggregation"),
            Self::Update => span!("update"),
        };
        span.entered()
    }
}
