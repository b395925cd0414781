//! Random streams of a job: each environment has a separate stream for each purpose, regardless of the worker that runs
//! it.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights; the stream is the same on every worker.
    Weights = 0,
    /// Action noise of one environment.
    Actions = 1,
    /// Start states of one environment's episodes.
    Resets = 2,
    /// Order in which one environment's samples enter minibatches.
    Minibatches = 3,
    /// Evaluation episodes.
    Evaluation = 4,
    /// Arrival rates of packets in a network.
    Rates = 5,
    /// Packets that arrive in a network.
    Arrivals = 6,
    /// Packets that arrive in a simulation with which a policy estimates the performance of a network.
    SimulatedArrivals = 7,
    /// Failure times of each GPU.
    Failures = 8,
    /// Failure times of each GPU in simulations that select a placement. They are independent of the failure times with
    /// which the placement is evaluated.
    SelectionFailures = 9,
}

/// Returns the stream of a job with `seed` for environment `index` and `purpose`. ChaCha8 streams with different
/// numbers never overlap.
pub fn stream(seed: u64, purpose: Purpose, index: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream((purpose as u64) << 32 | index as u64);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn random_streams_are_distinct_and_reproducible() {
        let first = |seed, purpose, index| stream(seed, purpose, index).next_u64();
        let all = [
            first(1, Purpose::Weights, 0),
            first(2, Purpose::Weights, 0),
            first(1, Purpose::Actions, 0),
            first(1, Purpose::Actions, 1),
            first(1, Purpose::Resets, 0),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
        }
        assert_eq!(first(1, Purpose::Actions, 1), all[3]);
    }
}
