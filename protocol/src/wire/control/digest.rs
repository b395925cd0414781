//! Digest: a message that reports a digest of a member's weights after a round.

use super::bytes::{padded, put_u32, put_u64, round_at, u32_at, u64_at};
use crate::segment::Round;
use crate::wire::WireError;

/// Length of a Digest, in bytes.
pub const DIGEST_LEN_BYTES: usize = 28;

pub(super) mod field {
    use core::ops::Range;

    pub(crate) const ROUND: Range<usize> = 12..16;
    pub(crate) const RESERVED: Range<usize> = 16..20;
    pub(crate) const DIGEST: Range<usize> = 20..28;
}

/// Value of a Digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestRepr {
    /// Last round whose sum is in the weights.
    pub round: Round,
    /// Digest of the weights after `round`. The members choose the digest function.
    pub digest: u64,
}

pub(super) fn parse_digest(buffer: &[u8]) -> Result<DigestRepr, WireError> {
    use field as at;
    padded(buffer, DIGEST_LEN_BYTES)?;
    if u32_at(buffer, at::RESERVED) != 0 {
        return Err(WireError::BadValue);
    }
    Ok(DigestRepr { round: round_at(buffer, at::ROUND)?, digest: u64_at(buffer, at::DIGEST) })
}

pub(super) fn emit_digest(buffer: &mut [u8], digest: &DigestRepr) {
    put_u32(buffer, field::ROUND, digest.round.get());
    put_u64(buffer, field::DIGEST, digest.digest);
}
