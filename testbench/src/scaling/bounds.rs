//! What no algorithm of its kind can beat: the bytes that its busiest link carries, and the links one after the other.

use super::{Algorithm, Picos, Scenario};

/// The least time of a sum, whatever processors and packets cost.
pub fn least(scenario: &Scenario, algorithm: Algorithm) -> Picos {
    let workers = scenario.workers as f64;
    let log = scenario.workers.ilog2();
    let vector_s = scenario.bytes() as f64 * 8.0 / scenario.bits_per_s;
    let levels = scenario.tree().levels() as f64;
    let share = (workers - 1.0) / workers;
    let power = f64::from(1_u32 << log);
    // Vectors over the busiest link, and links one after the other.
    let (vectors, links) = match algorithm {
        Algorithm::Daemon | Algorithm::Hardware => (1.0, 2.0 * levels),
        // Chunks without a float are not sent, but others go all the way.
        Algorithm::Ring | Algorithm::RingPipelined => (2.0 * share, 4.0 * (workers - 1.0)),
        Algorithm::Server => (2.0 * workers, 2.0 * (levels + 1.0)),
        Algorithm::ServerPipelined => (workers, 2.0 * (levels + 1.0)),
        Algorithm::ShardedServer => (2.0 * share, if scenario.workers > 1 { 4.0 } else { 0.0 }),
        Algorithm::HalvingDoubling => (2.0 * (power - 1.0) / power, 4.0 * f64::from(log)),
        Algorithm::RecursiveDoubling => (f64::from(log), 2.0 * f64::from(log)),
    };
    let (bytes_s, delays_s) = (vectors * vector_s, links * scenario.delay_us * 1e-6);
    // While one part of a chunk is under way for long, the others are sent.
    let is_overlapped = algorithm == Algorithm::RingPipelined;
    let seconds = if is_overlapped { bytes_s.max(delays_s) } else { bytes_s + delays_s };
    (seconds * super::resources::SECOND) as Picos
}
