//! Comparison of the adder's Verilog, simulated by Verilator, with [`add`].

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
/// Number of operand pairs sent to the simulation program at once.
const BLOCK_PAIRS: usize = 16_384;

type Pairs = Vec<(u32, u32)>;

/// Operand pairs to add.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of random pairs.
    pub random: u64,
    /// Seed for the random pairs.
    pub seed: u64,
    /// Interval at which corner pairs are selected; 1 selects all of them.
    pub corner_step: u64,
}

/// Counts of the sums compared, by kind. Returned only if every sum was correct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// Total number of sums compared.
    pub sums: u64,
    /// Number of sums that are NaN.
    pub nan: u64,
    /// Number of infinite sums.
    pub infinite: u64,
    /// Number of subnormal sums.
    pub subnormal: u64,
}

/// Reason why a verification failed.
#[derive(Debug, thiserror::Error)]
pub enum AdderError {
    /// The sum computed by the Verilog is wrong.
    #[error("{a:08x} + {b:08x}: the Verilog computes {got:08x}, expected {expected:08x}")]
    Mismatch {
        /// Bits of the operands.
        a: u32,
        #[expect(missing_docs)]
        b: u32,
        /// Result of [`add`]. `got` is the result of the Verilog.
        expected: u32,
        #[expect(missing_docs)]
        got: u32,
    },
    /// Communication with the simulation program failed.
    #[error("the simulation failed: {0}")]
    Pipe(#[from] io::Error),
}

impl Plan {
    /// Returns the number of pairs in the plan.
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

/// Returns the adder's Verilog.
pub fn verilog() -> String {
    let mut adder = Fp32Adder::default();
    adder.connect_all();
    generate::module(TOP, &adder)
}

/// Compiles the Verilog of an adder, using `directory` for the build files, and returns the path of the executable.
pub fn build(verilog: &str, directory: &Path) -> Result<PathBuf, BuildError> {
    verilator::compile(Source { top: TOP, verilog, driver: DRIVER }, directory)
}

/// Adds all pairs of the plan with a program built by [`build`], which receives `arguments` on its command line, and
/// compares each sum with that of [`add`]. Calls `progress` after each block of pairs with the number of sums compared
/// so far.
///
/// # Errors
/// Fails at the first wrong sum, or if communication with the program fails.
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
        // If the program ends early, the reader reports the cause.
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

/// Sends the pairs to the program and to the thread that compares the sums.
fn send(plan: Plan, mut to: impl Write, sender: &SyncSender<Pairs>) -> io::Result<()> {
    let mut pairs = plan.iter();
    loop {
        let block: Pairs = pairs.by_ref().take(BLOCK_PAIRS).collect();
        if block.is_empty() {
            // These pairs flush the last sums out of the pipeline.
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
    // The pipeline's output before the first sum is discarded.
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
