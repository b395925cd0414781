//! Discrete-event model of links and processors, which predicts the time of a sum over ten to a hundred thousand
//! workers.
//!
//! `aggregation` simulates the tree of switches, super-frame by super-frame or packet by packet. All other algorithms
//! are plans of messages (`plan`), which `packets` simulates packet by packet. With more than a few hundred workers,
//! this takes too long; `lockstep` then simulates one worker, which represents all. Processing times come from
//! [`costs`]; no vectors are actually summed.

mod aggregation;
pub mod bounds;
pub mod calibrate;
pub mod costs;
mod lockstep;
mod packets;
mod plan;
pub mod plot;
pub mod reality;
mod resources;
pub mod study;
pub mod topology;
pub mod wire;

use clap::ValueEnum;
use iswitch_protocol::limits::{DEFAULT_SEGMENT_FLOATS, FLOAT_LEN_BYTES, datagram_truesize};
use iswitch_protocol::part;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use costs::{Costs, to_picos};
use resources::{Cable, SECOND};
use topology::Tree;
use wire::Framing;

/// Virtual time, in picoseconds.
pub type Picos = u64;

/// Maximum number of floats in the vector of a scenario.
pub const MAX_FLOATS: u32 = 100_000_000;

/// Algorithm that sums vectors over workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum, strum::Display, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Tree of iswitchd switches
    #[strum(to_string = "iswitchd")]
    Daemon,
    /// Tree of switches that sum in hardware
    #[strum(to_string = "switch in hardware")]
    Hardware,
    /// Ring that passes whole chunks on, as in the paper
    #[strum(to_string = "ring, as in the paper")]
    Ring,
    /// Ring that passes on each super-frame
    #[strum(to_string = "ring, pipelined")]
    RingPipelined,
    /// Server that receives all vectors before it sends the sum, as in the paper
    #[strum(to_string = "parameter server, as in the paper")]
    Server,
    /// Server that sends each super-frame of the sum when it is complete
    #[strum(to_string = "parameter server, pipelined")]
    ServerPipelined,
    /// Parameter server in which each worker serves a part of the vector
    #[strum(to_string = "parameter server, sharded")]
    ShardedServer,
    /// Recursive halving and doubling of vectors (Rabenseifner 2004)
    #[strum(to_string = "halving and doubling")]
    HalvingDoubling,
    /// Recursive doubling: whole vectors are sent to ever farther partners
    #[strum(to_string = "recursive doubling")]
    RecursiveDoubling,
}

impl Algorithm {
    /// Returns whether switches compute the sums.
    pub fn is_switch(self) -> bool {
        matches!(self, Self::Daemon | Self::Hardware)
    }

    /// Returns whether the algorithm is a ring.
    pub fn is_ring(self) -> bool {
        matches!(self, Self::Ring | Self::RingPipelined)
    }
}

/// Level of detail at which the algorithms without a switch are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Every packet of every worker.
    Packets,
    /// One worker that represents all.
    Lockstep,
}

/// Parameters of a simulated sum: the vector, the workers, the network and the processing costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Number of workers.
    pub workers: usize,
    /// Number of workers at a switch of the lowest level.
    pub rack: usize,
    /// Number of switches below a switch of a higher level.
    pub radix: usize,
    /// Number of floats in the vector.
    pub floats: u32,
    /// Rate of every link in each direction, in bits per second. It is infinite if only processors limit the rate.
    pub bits_per_s: f64,
    /// Propagation delay of every link, in microseconds.
    pub delay_us: f64,
    /// Number of segments in a super-frame of a worker or of iswitchd.
    pub superframe_segments: usize,
    /// Number of threads of the daemon at each switch. Each thread has its own core and aggregates its share of the
    /// vector.
    pub switch_threads: usize,
    /// Receive buffer of each daemon, in bytes, from which the windows of the workers are calculated.
    pub switch_buffer_bytes: usize,
    /// Maximum random delay of a worker's start, in microseconds, drawn for each worker.
    pub jitter_us: f64,
    /// Seed of the random delays.
    pub seed: u64,
    /// Number of cores that all processes share; `None` if each process has its own machine.
    pub shared_cores: Option<usize>,
    /// Processing costs.
    pub costs: Costs,
}

impl Scenario {
    /// Returns a scenario with racks of three workers, as in the paper, below switches with 64 ports. The links have a
    /// rate of 10 Gbit/s and a delay of 1 us.
    pub fn new(workers: usize, floats: u32, costs: Costs) -> Self {
        Self {
            workers,
            rack: 3,
            radix: 64,
            floats,
            bits_per_s: 10e9,
            delay_us: 1.0,
            superframe_segments: 44,
            switch_threads: 1,
            switch_buffer_bytes: 16 << 20,
            jitter_us: 0.0,
            seed: 0,
            shared_cores: None,
            costs,
        }
    }

    /// Returns the tree of switches.
    pub fn tree(&self) -> Tree {
        Tree::new(self.workers, self.rack, self.radix)
    }

    /// Returns the length of the vector in bytes.
    pub fn bytes(&self) -> usize {
        self.floats as usize * FLOAT_LEN_BYTES
    }

    /// Returns the time of one sum, from the first worker's start until the last worker has the sum.
    pub fn run(&self, algorithm: Algorithm, detail: Detail) -> Picos {
        match (algorithm, detail) {
            (Algorithm::Daemon | Algorithm::Hardware, _) => aggregation::run(self, algorithm, self.folds()),
            (_, Detail::Packets) => packets::run(self, plan::of(self, algorithm)),
            (_, Detail::Lockstep) => lockstep::run(self, algorithm),
        }
    }

    /// Returns whether all workers begin at once on their own machines, so that switches with the same number of
    /// workers behave identically.
    fn folds(&self) -> bool {
        self.jitter_us == 0.0 && self.shared_cores.is_none()
    }

    fn cable(&self) -> Cable {
        Cable {
            picos_per_byte: (SECOND * 8.0 / self.bits_per_s).round() as Picos,
            delay: to_picos(self.delay_us * 1e3),
        }
    }

    /// Returns the number of threads of each daemon that share the vector (requirement T-3).
    fn threads(&self) -> usize {
        part::count(self.switch_threads, self.floats, DEFAULT_SEGMENT_FLOATS)
    }

    /// Returns the number of segments that a worker may have in flight, according to the windows that the switches
    /// grant.
    fn window_segments(&self) -> usize {
        let datagram = datagram_truesize(Framing::segments(1).payload_bytes);
        self.threads() * (self.switch_buffer_bytes / (datagram * self.tree().fan_in())).max(1)
    }

    /// Returns the time at which each worker begins.
    fn starts(&self) -> Vec<Picos> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let most = to_picos(self.jitter_us * 1e3);
        (0..self.workers).map(|_| if most == 0 { 0 } else { random.random_range(0..=most) }).collect()
    }
}

/// Converts picoseconds to microseconds.
pub fn micros(time: Picos) -> f64 {
    time as f64 * 1e-6
}
