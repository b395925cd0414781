//! Number of instructions that the core executes per packet. Valgrind counts them, so other processes do not affect the
//! result. A table records the counts, and new counts are compared with the recorded ones.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use iswitch_simulation::core_load::{INSTRUCTION_MEMBERS, INSTRUCTION_SEGMENTS, LoadMode, SEGMENT_FLOATS};

use iswitch_harness::scratch;
use strum::IntoEnumIterator as _;

/// Document with the table, relative to the root of the workspace.
pub const TABLE: &str = "docs/results/core.md";
/// Line above the table.
const HEADING: &str = "## Instructions";
/// Maximum accepted difference between a count and the table, in percent. A small difference may be due to a different
/// version of the compiler.
pub const TOLERANCE_PERCENT: u64 = 10;

/// Numbers of rounds in a short run and in a long run. The difference between their counts does not include the
/// startup of the program.
const ROUNDS: [u32; 2] = [4, 20];

/// Number of instructions that the core executes per packet, in one mode and for one packet length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Mode of the job.
    #[serde(serialize_with = "name")]
    pub mode: LoadMode,
    /// Number of floats in the packet. With one float, nearly all instructions are outside the addition.
    pub floats: usize,
    /// Number of instructions per packet.
    pub instructions: u64,
}

fn name<S: serde::Serializer>(mode: &LoadMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.name())
}

/// Returns a requirement that this machine does not fulfil, or `None` if counts on this machine are comparable with
/// those in the table.
pub fn obstacle() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return None;
    }
    // Valgrind supports AVX2 but not AVX-512, so under Valgrind the loops use AVX2 on every CPU that has it.
    Some("an x86-64 CPU with AVX2")
}

/// Counts the instructions for a packet of maximum and of minimum length in each mode. `program` is `core_load`, built
/// with `--release`.
///
/// # Errors
/// Fails if Valgrind is missing or fails.
pub fn count(program: &Path) -> Result<Vec<Count>> {
    let mut counts = Vec::new();
    for floats in [SEGMENT_FLOATS, 1] {
        for mode in LoadMode::iter() {
            let totals = ROUNDS.map(|rounds| total(program, mode, floats, rounds));
            let [shorter, longer] = totals;
            let packets =
                u64::from(ROUNDS[1] - ROUNDS[0]) * (INSTRUCTION_MEMBERS * INSTRUCTION_SEGMENTS) as u64;
            let instructions = (longer? - shorter?).div_ceil(packets);
            counts.push(Count { mode, floats, instructions });
        }
    }
    Ok(counts)
}

/// Returns the number of instructions of a whole run of the program.
fn total(program: &Path, mode: LoadMode, floats: usize, rounds: u32) -> Result<u64> {
    let directory = scratch::directory();
    let profile = directory.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", profile.display())).arg(program);
    command.args(["--mode", mode.name(), "--floats", &floats.to_string(), "--rounds", &rounds.to_string()]);
    let output =
        command.output().context("cannot run valgrind; install the package `valgrind` if it is missing")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{complaint}", output.status);
    let text = std::fs::read_to_string(&profile).context("cannot read the output of callgrind")?;
    let totals = text
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .context("the output of callgrind has no totals")?;
    totals.trim().parse().with_context(|| format!("callgrind's total is {totals:?}, expected a number"))
}

/// Formats counts as the rows of a table.
pub fn table(counts: &[Count]) -> String {
    let rows = counts
        .iter()
        .map(|Count { mode, floats, instructions }| format!("| {mode} | {floats} | {instructions} |\n"));
    format!("| mode | floats | instructions |\n|---|---|---|\n{}", rows.collect::<String>())
}

/// Reads the table of counts from a document.
///
/// # Errors
/// Fails if the document has no such table.
pub fn parse(document: &str) -> Result<Vec<Count>> {
    let (_, below) =
        document.split_once(HEADING).with_context(|| format!("the line {HEADING:?} is missing"))?;
    let section = below.split("\n## ").next().unwrap_or_default();
    let counts: Vec<_> = section.lines().filter_map(parse_row).collect();
    ensure!(!counts.is_empty(), "the table below {HEADING:?} is missing");
    Ok(counts)
}

fn parse_row(line: &str) -> Option<Count> {
    let cells: Vec<_> = line.trim_matches(['|', ' ']).split('|').map(str::trim).collect();
    let [mode, floats, instructions] = cells[..] else { return None };
    Some(Count {
        mode: mode.parse().ok()?,
        floats: floats.parse().ok()?,
        instructions: instructions.parse().ok()?,
    })
}

/// Compares counts with the recorded ones.
///
/// # Errors
/// Fails if counts differ by more than [`TOLERANCE_PERCENT`]. The error lists these counts and explains how to update
/// the table.
pub fn compare(counts: &[Count], kept: &[Count]) -> Result<()> {
    let mut problems = Vec::new();
    for Count { mode, floats, instructions } in counts {
        match kept.iter().find(|kept| (kept.mode, kept.floats) == (*mode, *floats)) {
            None => problems
                .push(format!("{mode}, {floats} floats: {instructions} instructions, not in the table")),
            Some(kept) if is_near(*instructions, kept.instructions) => {}
            Some(kept) => {
                let kept = kept.instructions;
                problems.push(format!(
                    "{mode}, {floats} floats: {instructions} instructions, but the table has {kept}"
                ));
            }
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "{}\nexpected differences of at most {TOLERANCE_PERCENT} %; if the change is intended or the compiler differs, \
         replace the table below {HEADING:?} in {TABLE} with the output of: \
         cargo run --release -p iswitch-testbench --bin testbench -- instructions",
        problems.join("\n")
    )
}

fn is_near(count: u64, kept: u64) -> bool {
    count.abs_diff(kept) * 100 <= kept * TOLERANCE_PERCENT
}
