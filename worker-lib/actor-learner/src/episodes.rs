//! Episode statistics that the actors of off-policy algorithms send. Each message is 16 bytes long, and is delivered to
//! only one learner.

use super::ActorLearnerError;
use super::error::malformed;
use iswitch_learn::algorithms::halves::Tail;

const FLOATS: usize = 4;
const BYTES: usize = FLOATS * size_of::<f32>();

/// Encodes the step and episode counts, and the sums of the episodes' returns and lengths, as little-endian floats.
pub(super) fn to_bytes(tail: &Tail) -> Vec<u8> {
    let floats: [f32; FLOATS] = [tail.steps, tail.episodes, tail.returns, tail.lengths];
    bytemuck::cast_slice(&floats).to_vec()
}

/// Decodes the output of [`to_bytes`].
pub(super) fn from_bytes(bytes: &[u8]) -> Result<Tail, ActorLearnerError> {
    let Ok(bytes) = <[u8; BYTES]>::try_from(bytes) else {
        return Err(malformed("episodes", format!("{} bytes", bytes.len()), BYTES.to_string()));
    };
    let [steps, episodes, returns, lengths]: [f32; FLOATS] = bytemuck::pod_read_unaligned(&bytes);
    Ok(Tail { steps, episodes, returns, lengths, ..Tail::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episode_statistics_round_trip() {
        let tail = Tail { steps: 64.0, episodes: 2.0, returns: -3.5, lengths: 60.0, ..Tail::default() };
        assert_eq!(from_bytes(&to_bytes(&tail)).unwrap(), tail);
        assert_eq!(from_bytes(&[0; 15]).unwrap_err().to_string(), "episodes is 15 bytes, expected 16");
    }
}
