//! What an asynchronous simulation is made of, and how a seed draws it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::upsets::{PlannedUpset, Upset};
use crate::swarm::Draw;

/// What the network does to packets. Probabilities are per datagram.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Faults {
    /// Time on the wire of every packet.
    pub delay: Duration,
    /// Up to this much more, drawn for each packet: what reorders them.
    pub jitter: Duration,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub duplication: f64,
}

impl Faults {
    /// Nothing is lost, nothing overtaken.
    pub const NONE: Self =
        Self { delay: Duration::from_micros(20), jitter: Duration::ZERO, loss: 0.0, duplication: 0.0 };

    fn draw(draw: &mut Draw) -> Self {
        let mut faults = Self { delay: draw.time(5..=200), ..Self::NONE };
        if draw.chance(0.5) {
            faults.jitter = draw.time(1..=5_000);
        }
        if draw.chance(0.6) {
            faults.loss = draw.scale(1e-3, 0.3);
        }
        if draw.chance(0.4) {
            faults.duplication = draw.scale(1e-3, 0.3);
        }
        faults
    }
}

/// One worker.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Pace {
    /// Time that it takes to compute a gradient.
    pub compute: Duration,
    /// Stops it for every second one of these periods: it does nothing, and what arrives waits.
    pub stall: Option<Duration>,
}

/// A job to simulate.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Scenario {
    /// Its workers.
    pub workers: Vec<Pace>,
    /// The threshold H that the first of them sets; 0 lets it follow the members.
    pub threshold: u16,
    /// The bound S.
    pub staleness_bound: u32,
    /// The network.
    pub faults: Faults,
    /// Virtual time that the job runs.
    pub duration: Duration,
    /// Whether all faults end after that, and every worker then has to go on.
    pub heals: bool,
    /// What happens meanwhile, in order.
    pub upsets: Vec<PlannedUpset>,
    /// Whether the job has a key.
    pub is_keyed: bool,
}

impl Scenario {
    /// What a seed stands for.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let count = draw.among(1..=8);
        let compute = draw.time(20..=3_000);
        let is_uneven = draw.chance(0.5);
        let may_stall = draw.chance(0.4);
        let pace = |draw: &mut Draw| Pace {
            compute: if is_uneven { compute * draw.among(1..=10) as u32 } else { compute },
            stall: (may_stall && draw.chance(0.5)).then(|| draw.time(500..=30_000)),
        };
        let workers = (0..count).map(|_| pace(&mut draw)).collect();
        let faults = Faults::draw(&mut draw);
        // About the time that the fastest worker needs for a vector.
        let turn = compute + faults.delay * 2;
        let threshold = if draw.chance(0.5) { 0 } else { draw.among(1..=count + 2) as u16 };
        let staleness_bound = draw.among(0..=4) as u32;
        let duration = turn * draw.scale(10.0, 250.0) as u32;
        Self {
            workers,
            threshold,
            staleness_bound,
            faults,
            duration,
            heals: true,
            upsets: draw_upsets(&mut draw, duration, count),
            is_keyed: draw.chance(0.3),
        }
    }
}

fn draw_upsets(draw: &mut Draw, duration: Duration, workers: usize) -> Vec<PlannedUpset> {
    let count = if draw.chance(0.5) { 0 } else { draw.among(1..=3) };
    let upset = |draw: &mut Draw| {
        let at = duration.mul_f64(draw.among(0..=1_000) as f64 / 1_000.0);
        let upset = if draw.chance(0.5) { Upset::Restart } else { Upset::Reset(draw.among(0..=workers - 1)) };
        (at, upset)
    };
    let mut upsets: Vec<_> = (0..count).map(|_| upset(draw)).collect();
    upsets.sort_by_key(|(at, _)| *at);
    upsets
}
