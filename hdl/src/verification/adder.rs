//! The adder's Verilog under Verilator, against [`add`].

use std::io::{self, BufReader, Read, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rust_hdl::prelude::*;

use crate::adder::vectors::{CORNER_PAIRS, corner_pair, random_pair};
use crate::adder::{Fp32Adder, LATENCY_CYCLES, add};
use crate::generate;
use crate::simulation::verilator::{self, BuildError, Source};

const TOP: &str = "fp32_adder";
const DRIVER: &str = include_str!("../../cpp/adder.cpp");
/// Pairs that go to the program at once.
const BLOCK_PAIRS: usize = 16_384;

type Pairs = Vec<(u32, u32)>;

/// What is added.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Random pairs.
    pub random: u64,
    /// Decides about them.
    pub seed: u64,
    /// Every so many-th corner pair; 1 is all of them.
    pub corner_step: u64,
}

/// How many sums were right, and what was among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// Sums compared.
    pub sums: u64,
    /// Of these, sums that are no number.
    pub nan: u64,
    /// Infinite ones.
    pub infinite: u64,
    /// Subnormal ones.
    pub subnormal: u64,
}

/// Why not all of them were.
#[derive(Debug, thiserror::Error)]
pub enum AdderError {
    /// The sum in Verilog is another one.
    #[error("{a:08x} + {b:08x}: the Verilog gives {got:08x}, expected {expected:08x}")]
    Mismatch {
        /// Bits of the operands.
        a: u32,
        #[expect(missing_docs)]
        b: u32,
        /// What [`add`] says.
        expected: u32,
        #[expect(missing_docs)]
        got: u32,
    },
    /// The program could not be spoken to.
    #[error("the simulation: {0}")]
    Pipe(#[from] io::Error),
}

impl Plan {
    /// Pairs of the plan.
    pub fn pairs(&self) -> u64 {
        self.random + CORNER_PAIRS.div_ceil(self.corner_step)
    }

    fn iter(self) -> impl Iterator<Item = (u32, u32)> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let randoms = (0..self.random).map(move |_| random_pair(&mut random));
        let corners = (0..CORNER_PAIRS.div_ceil(self.corner_step)).map(move |i| i * self.corner_step);
        randoms.chain(corners.map(corner_pair))
    }
}

/// The adder's Verilog.
pub fn verilog() -> String {
    let mut adder = Fp32Adder::default();
    adder.connect_all();
    generate::module(TOP, &adder)
}

/// Compiles Verilog of an adder in that directory, and returns the program's path.
pub fn build(verilog: &str, directory: &Path) -> Result<PathBuf, BuildError> {
    verilator::compile(Source { top: TOP, verilog, driver: DRIVER }, directory)
}

/// Lets a program that [`build`] made add all pairs of the plan, and compares the sums. `progress` is told how many.
///
/// # Errors
/// At the first sum that is wrong.
pub fn verify(
    program: &Path,
    arguments: &[String],
    plan: Plan,
    progress: impl FnMut(u64),
) -> Result<Outcome, AdderError> {
    let mut child =
        Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let to = child.stdin.take().expect("the input is piped");
    let from = BufReader::with_capacity(4 * BLOCK_PAIRS, child.stdout.take().expect("the output is piped"));
    let (sender, receiver) = sync_channel(8);
    thread::scope(|scope| {
        // If the program ends early, the reader says why.
        scope.spawn(move || send(plan, to, &sender));
        let outcome = compare(from, &receiver, progress);
        drop(receiver);
        end(&mut child);
        outcome
    })
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Pairs go to the program, and to who compares.
fn send(plan: Plan, mut to: impl Write, sender: &SyncSender<Pairs>) -> io::Result<()> {
    let mut pairs = plan.iter();
    loop {
        let block: Pairs = pairs.by_ref().take(BLOCK_PAIRS).collect();
        if block.is_empty() {
            // The last sums come out while these go in.
            return put(&mut to, iter::repeat_n((0, 0), LATENCY_CYCLES - 1));
        }
        put(&mut to, block.iter().copied())?;
        if sender.send(block).is_err() {
            return Ok(());
        }
    }
}

fn put(to: &mut impl Write, pairs: impl Iterator<Item = (u32, u32)>) -> io::Result<()> {
    let bytes: Vec<_> = pairs.flat_map(|(a, b)| [a, b]).flat_map(u32::to_le_bytes).collect();
    to.write_all(&bytes)
}

fn compare(
    mut from: impl Read,
    receiver: &Receiver<Pairs>,
    mut progress: impl FnMut(u64),
) -> Result<Outcome, AdderError> {
    let mut outcome = Outcome::default();
    // What comes out before the first sum.
    from.read_exact(&mut [0; 4 * (LATENCY_CYCLES - 1)])?;
    let mut sums = vec![0; 4 * BLOCK_PAIRS];
    for block in receiver {
        let sums = &mut sums[..4 * block.len()];
        from.read_exact(sums)?;
        for ((a, b), sum) in block.into_iter().zip(sums.as_chunks().0) {
            let (got, expected) = (u32::from_le_bytes(*sum), add(a, b));
            if got != expected {
                return Err(AdderError::Mismatch { a, b, expected, got });
            }
            outcome.count(f32::from_bits(expected));
        }
        progress(outcome.sums);
    }
    Ok(outcome)
}

impl Outcome {
    fn count(&mut self, sum: f32) {
        self.sums += 1;
        self.nan += u64::from(sum.is_nan());
        self.infinite += u64::from(sum.is_infinite());
        self.subnormal += u64::from(sum.is_subnormal());
    }
}
