//! How long a sum takes with ten workers and with a hundred thousand: discrete events on links and processors.
//!
//! `aggregation` is the tree of switches, super-frame by super-frame or packet by packet. All other algorithms are
//! plans of messages (`plan`), which `packets` carries out packet by packet. Beyond some hundred workers that takes
//! too long, and `lockstep` follows one worker that stands for all. What processors take comes from [`costs`]; no
//! floats are moved.

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
use iswitch_protocol::limits::{FLOAT_LEN_BYTES, datagram_truesize};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use costs::{Costs, to_picos};
use resources::{Cable, SECOND};
use topology::Tree;
use wire::Framing;

/// Virtual time, in picoseconds.
pub type Picos = u64;

/// Most floats of a vector in a study.
pub const MAX_FLOATS: u32 = 100_000_000;

/// A way to sum vectors over workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum, strum::Display, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// A tree of iswitchd.
    #[strum(to_string = "iswitchd")]
    Daemon,
    /// A tree of switches that sum in hardware.
    #[strum(to_string = "switch in hardware")]
    Hardware,
    /// A ring in whole chunks, as in the paper.
    #[strum(to_string = "ring, as in the paper")]
    Ring,
    /// A ring that passes on each super-frame.
    #[strum(to_string = "ring, pipelined")]
    RingPipelined,
    /// A server that has all vectors before it sends the sum, as in the paper.
    #[strum(to_string = "parameter server, as in the paper")]
    Server,
    /// A server that sends each super-frame of the sum when it is complete.
    #[strum(to_string = "parameter server, pipelined")]
    ServerPipelined,
    /// Each worker is the server of a part of the vector.
    #[strum(to_string = "parameter server, sharded")]
    ShardedServer,
    /// Recursive halving and doubling of vectors (Rabenseifner 2004).
    #[strum(to_string = "halving and doubling")]
    HalvingDoubling,
    /// Recursive doubling: whole vectors to ever farther partners.
    #[strum(to_string = "recursive doubling")]
    RecursiveDoubling,
}

impl Algorithm {
    /// Whether switches sum.
    pub fn is_switch(self) -> bool {
        matches!(self, Self::Daemon | Self::Hardware)
    }

    /// Whether it is a ring.
    pub fn is_ring(self) -> bool {
        matches!(self, Self::Ring | Self::RingPipelined)
    }
}

/// How closely the algorithms without a switch are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Every packet of every worker.
    Packets,
    /// One worker that stands for all.
    Lockstep,
}

/// What is summed, by whom, over which network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Workers.
    pub workers: usize,
    /// Workers at a switch of the lowest level.
    pub rack: usize,
    /// Switches below a switch of a higher level.
    pub radix: usize,
    /// Floats in the vector.
    pub floats: u32,
    /// Rate of every link, each way, in bits a second; infinite where nothing but processors limits.
    pub bits_per_s: f64,
    /// Time that a bit takes from one end of a link to the other, in microseconds.
    pub delay_us: f64,
    /// Segments in a super-frame of a worker or of iswitchd.
    pub superframe_segments: usize,
    /// Daemons at each switch, a core each, which share out the vector.
    pub switch_daemons: usize,
    /// Receive buffer of each daemon, in bytes; from it come the windows of the workers.
    pub switch_buffer_bytes: usize,
    /// Workers begin up to this much later, drawn for each, in microseconds.
    pub jitter_us: f64,
    /// Decides the draws.
    pub seed: u64,
    /// All processes share so many cores; none where each has a machine of its own.
    pub shared_cores: Option<usize>,
    /// What processors take.
    pub costs: Costs,
}

impl Scenario {
    /// So many workers in racks of three, as in the paper, below switches with 64 ports; 10 Gbit/s, 1 us.
    pub fn new(workers: usize, floats: u32, costs: Costs) -> Self {
        Self {
            workers,
            rack: 3,
            radix: 64,
            floats,
            bits_per_s: 10e9,
            delay_us: 1.0,
            superframe_segments: 44,
            switch_daemons: 1,
            switch_buffer_bytes: 16 << 20,
            jitter_us: 0.0,
            seed: 0,
            shared_cores: None,
            costs,
        }
    }

    /// The switches.
    pub fn tree(&self) -> Tree {
        Tree::new(self.workers, self.rack, self.radix)
    }

    /// Bytes of the vector.
    pub fn bytes(&self) -> usize {
        self.floats as usize * FLOAT_LEN_BYTES
    }

    /// Time of one sum: from the first worker's start until the last worker has the sum.
    pub fn run(&self, algorithm: Algorithm, detail: Detail) -> Picos {
        match (algorithm, detail) {
            (Algorithm::Daemon | Algorithm::Hardware, _) => aggregation::run(self, algorithm, self.folds()),
            (_, Detail::Packets) => packets::run(self, plan::of(self, algorithm)),
            (_, Detail::Lockstep) => lockstep::run(self, algorithm),
        }
    }

    /// Whether switches of which all workers begin at once are alike.
    fn folds(&self) -> bool {
        self.jitter_us == 0.0 && self.shared_cores.is_none()
    }

    fn cable(&self) -> Cable {
        Cable {
            picos_per_byte: (SECOND * 8.0 / self.bits_per_s).round() as Picos,
            delay: to_picos(self.delay_us * 1e3),
        }
    }

    /// Segments that a worker may have in flight, as each iswitchd grants them.
    fn window_segments(&self) -> usize {
        let datagram = datagram_truesize(Framing::segments(1).payload_bytes);
        self.switch_daemons * (self.switch_buffer_bytes / (datagram * self.tree().fan_in())).max(1)
    }

    /// When each worker begins.
    fn starts(&self) -> Vec<Picos> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let most = to_picos(self.jitter_us * 1e3);
        (0..self.workers).map(|_| if most == 0 { 0 } else { random.random_range(0..=most) }).collect()
    }
}

/// Picoseconds as microseconds.
pub fn micros(time: Picos) -> f64 {
    time as f64 * 1e-6
}
