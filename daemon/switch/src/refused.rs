//! Human-readable text for a refused Join: the reason, and the limit or the expected value.

use core::fmt;

use iswitch_protocol::wire::{AckRepr, Exceeded, Status};

/// Reason why a Join was refused. Its text names the limit of the switch that the Join would exceed, or the expected
/// value if the status has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: Status,
    /// Expected value, see [`Status`].
    pub(crate) expected: u32,
    /// Limit of the switch that the Join would exceed, if any.
    pub(crate) exceeded: Option<Exceeded>,
}

impl Refused {
    /// Returns the refusal that the Ack of a Join contains.
    pub(crate) fn in_ack(ack: &AckRepr<'_>) -> Self {
        Self { status: ack.status, expected: ack.expected, exceeded: ack.exceeded() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, expected, exceeded } = *self;
        f.write_str(status.name())?;
        if let Some(exceeded) = exceeded {
            write!(f, ": {exceeded}")?;
            return match status {
                Status::NoCapacity if expected > 0 => write!(f, "; {expected} KiB are available to the job"),
                _ => Ok(()),
            };
        }
        match status {
            Status::Malformed
            | Status::UnknownMember
            | Status::UnknownJob
            | Status::BadLayout
            | Status::Halted
            | Status::StaleRound => Ok(()),
            // The refusing switch does not name its limits, or names a limit that this switch does not know.
            Status::NoCapacity | Status::JobFull if expected == 0 => Ok(()),
            _ => write!(f, " (expected {expected})"),
        }
    }
}
