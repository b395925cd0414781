//! Lower bounds of algorithms: the bytes that the busiest link carries, and the delays of the links in sequence.

use super::{Algorithm, Picos, Scenario};

/// Returns the minimum time of a sum, ignoring the processing costs and the overhead of packets.
pub fn least(scenario: &Scenario, algorithm: Algorithm) -> Picos {
    let workers = scenario.workers as f64;
    let log = scenario.workers.ilog2();
    let vector_s = scenario.bytes() as f64 * 8.0 / scenario.bits_per_s;
    let levels = scenario.tree().levels() as f64;
    let share = (workers - 1.0) / workers;
    let power = f64::from(1_u32 << log);
    // Number of vectors that the busiest link carries, and number of links in sequence.
    let (vectors, links) = match algorithm {
        Algorithm::Daemon | Algorithm::Hardware => (1.0, 2.0 * levels),
        // Chunks without a float are not sent, but the other chunks pass all links.
        Algorithm::Ring | Algorithm::RingPipelined => (2.0 * share, 4.0 * (workers - 1.0)),
        Algorithm::Server => (2.0 * workers, 2.0 * (levels + 1.0)),
        Algorithm::ServerPipelined => (workers, 2.0 * (levels + 1.0)),
        Algorithm::ShardedServer => (2.0 * share, if scenario.workers > 1 { 4.0 } else { 0.0 }),
        Algorithm::HalvingDoubling => (2.0 * (power - 1.0) / power, 4.0 * f64::from(log)),
        Algorithm::RecursiveDoubling => (f64::from(log), 2.0 * f64::from(log)),
    };
    let (bytes_s, delays_s) = (vectors * vector_s, links * scenario.delay_us * 1e-6);
    // In a pipelined ring, the delay of one super-frame overlaps with the transmission of the others.
    let is_overlapped = algorithm == Algorithm::RingPipelined;
    let seconds = if is_overlapped { bytes_s.max(delays_s) } else { bytes_s + delays_s };
    (seconds * super::resources::SECOND) as Picos
}
