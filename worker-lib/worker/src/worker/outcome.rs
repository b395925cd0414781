//! Conversion of protocol outcomes into aggregation errors.

use iswitch_protocol::Round;
use iswitch_protocol::wire::Status;

use super::protocol::Failure;
use crate::aggregate::AggregateError;

/// Returns the aggregation error for a failed round.
pub(super) fn round_error(round: Round, failure: Failure) -> AggregateError {
    match failure {
        // A session rejoins by itself; only a round that it cannot resume is reported.
        Failure::Forgotten => AggregateError::Expelled { reason: "unknown member" },
        Failure::JoinRefused(status, expected) => {
            AggregateError::Expelled { reason: status.reason(expected) }
        }
        Failure::Missed(next) => AggregateError::MissedRounds { next: next.get() },
        Failure::Halted => AggregateError::Halted,
        Failure::StaleRound(current) => {
            AggregateError::StaleRound { round: round.get(), current: current.get() }
        }
        Failure::Refused(status) => AggregateError::Refused { reason: status.name() },
    }
}

/// Converts the outcome of a Leave or a Reset. If the Ack of such a request is lost, the answer to its retransmission
/// states that the switch does not know the member, which means that the request has succeeded.
pub(super) fn forgotten_is_done(outcome: Result<(), AggregateError>) -> Result<(), AggregateError> {
    match outcome {
        Err(AggregateError::Expelled { .. }) => Ok(()),
        outcome => outcome,
    }
}

/// Returns the outcome of a request whose Ack has the given status.
pub(super) fn accept(status: Status) -> Result<(), AggregateError> {
    match status {
        Status::Success => Ok(()),
        Status::UnknownMember => Err(AggregateError::Expelled { reason: status.name() }),
        Status::Halted => Err(AggregateError::Halted),
        status => Err(AggregateError::Refused { reason: status.name() }),
    }
}
