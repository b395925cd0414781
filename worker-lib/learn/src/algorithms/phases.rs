//! Timing of the phases of an iteration, as `tracing` spans at level TRACE. The time spent in a nested span is not
//! counted in the enclosing span. If no subscriber enables the spans, each costs one memory load.

use tracing::Level;
use tracing::span::EnteredSpan;

/// `tracing` target of the spans, which are named by [`Phase::name`].
pub const TARGET: &str = "iswitch::phase";

/// Phases of an iteration, in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// Choosing actions and recording their outcomes.
    Act,
    /// Stepping the environment.
    Environment,
    /// Drawing or assembling a batch.
    Sample,
    /// The forward pass of the networks, and the loss.
    Forward,
    /// Backward pass of the networks.
    Backward,
    /// Sum over all workers.
    Aggregation,
    /// Applying a gradient.
    Update,
}

impl Phase {
    /// Returns the name in lower case.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Enters the span of this phase. The phase ends when the returned guard is dropped.
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
