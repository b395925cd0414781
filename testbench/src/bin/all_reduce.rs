//! Checks and times all-reduce through a switch, in the manner of nccl-tests.
//!
//! Every worker of a job runs one. Each element of each sum is checked, for as many rounds as asked. Values
//! are integers, so that sums are exact in any order of arrival, and differ by rank, round and element, so
//! that a contribution that is counted twice, missing, stale or misplaced shows.

use std::fmt::Write as _;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use iswitch::{AggregatorStats, GradientAggregator, JoinOptions, Worker, key_file};
use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_MEMBERS;

/// Exit status for a wrong sum.
const WRONG_SUM: u8 = 1;
/// Exit status for a check that did not come to its end.
const NOT_CHECKED: u8 = 2;

/// Checks and times all-reduce through a switch.
#[derive(Clone, Debug, Parser)]
#[command(version)]
struct Cli {
    /// Address of the switch
    #[arg(long, value_name = "ADDR:PORT")]
    switch: SocketAddrV4,
    /// Number of workers [default: OMPI_COMM_WORLD_SIZE or WORLD_SIZE]
    #[arg(long)]
    workers: Option<u16>,
    /// Rank of this worker, from 0 [default: OMPI_COMM_WORLD_RANK or RANK]
    #[arg(long)]
    rank: Option<u16>,
    /// Floats in the vector
    #[arg(long, default_value_t = 10_119)]
    floats: u32,
    /// Rounds to check
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// End after the round in which the first worker has run for so long
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Floats in a packet [default: 366, or 364 with --tag-data]
    #[arg(long)]
    segment_floats: Option<u16>,
    /// The job
    #[arg(long, default_value_t = 0)]
    job: u32,
    /// File with the job's key
    #[arg(long, value_name = "PATH", env = "ISWITCH_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Tag data packets with the key as well
    #[arg(long, requires = "key_file")]
    tag_data: bool,
    /// Move one datagram in each system call
    #[arg(long)]
    no_offload: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Place of a worker among the others.
#[derive(Clone, Copy, Debug)]
struct Place {
    rank: u16,
    workers: u16,
}

/// A sum that is not what it must be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WrongSum {
    round: u32,
    element: usize,
    got: f32,
    expected: f32,
}

/// What was measured.
#[derive(Debug)]
struct Outcome {
    /// Time of each round: from a worker's last gradient element to its last sum, so that waiting for slower
    /// workers is part of it.
    times: Vec<Duration>,
    stats: AggregatorStats,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match Place::of(&cli).and_then(|place| run(&cli, place).map(|outcome| (place, outcome))) {
        Ok((place, Ok(outcome))) => {
            println!("{}", outcome.render(&cli, place));
            ExitCode::SUCCESS
        }
        Ok((place, Err(WrongSum { round, element, got, expected }))) => {
            let rank = place.rank;
            eprintln!(
                "all_reduce: rank {rank} round {round} element {element}: got {got}, expected {expected}"
            );
            ExitCode::from(WRONG_SUM)
        }
        Err(error) => {
            eprintln!("all_reduce: {error:#}");
            ExitCode::from(NOT_CHECKED)
        }
    }
}

impl Place {
    /// From the command line, or from what the launcher has set.
    fn of(cli: &Cli) -> anyhow::Result<Self> {
        let rank = cli.rank.map_or_else(|| from_launcher(["OMPI_COMM_WORLD_RANK", "RANK"], "--rank"), Ok)?;
        let workers = cli
            .workers
            .map_or_else(|| from_launcher(["OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"], "--workers"), Ok)?;
        anyhow::ensure!(rank < workers, "rank {rank} of {workers} workers: ranks count from 0");
        anyhow::ensure!(usize::from(workers) <= MAX_MEMBERS, "{workers} workers, at most {MAX_MEMBERS}");
        Ok(Self { rank, workers })
    }
}

fn from_launcher(variables: [&str; 2], option: &str) -> anyhow::Result<u16> {
    let found = variables.iter().find_map(|name| Some((name, std::env::var(name).ok()?)));
    let (name, value) = found.with_context(|| format!("give {option}, or run under mpirun"))?;
    value.parse().with_context(|| format!("{name}={value}"))
}

fn run(cli: &Cli, place: Place) -> anyhow::Result<Result<Outcome, WrongSum>> {
    let mut options = JoinOptions::new(cli.switch, place.workers, cli.floats);
    options.job = cli.job;
    options.rank = place.rank;
    if let Some(path) = &cli.key_file {
        let key = key_file::read(path).with_context(|| format!("key file {}", path.display()))?;
        options = options.with_key(key, cli.tag_data);
    }
    options.segment_floats = cli.segment_floats.unwrap_or(options.segment_floats);
    options.offload = !cli.no_offload;
    options.workers_timeout = Some(Duration::from_secs(60));
    let mut worker = Worker::join(options)?;
    let values = Values::new(place, cli.floats);
    let outcome = check_rounds(cli, place, &values, &mut worker)?;
    Ok(outcome.map(|times| Outcome { times, stats: worker.stats() }))
}

fn check_rounds(
    cli: &Cli,
    place: Place,
    values: &Values,
    worker: &mut Worker,
) -> anyhow::Result<Result<Vec<Duration>, WrongSum>> {
    let begin = Instant::now();
    let mut vector = values.own.clone();
    let mut times = Vec::new();
    let first = worker.membership().start.get();
    for round in 0..cli.rounds {
        values.fill(&mut vector, round);
        // The last element is a vote, so that all workers end after the same round.
        let has_time = cli.seconds.map(|seconds| begin.elapsed().as_secs_f64() < seconds);
        if let Some(has_time) = has_time {
            *vector.last_mut().context("--seconds needs a float")? = f32::from(u8::from(!has_time));
        }
        let start = Instant::now();
        let report = worker.all_reduce(&mut vector).with_context(|| format!("round {round}"))?;
        times.push(start.elapsed());
        anyhow::ensure!(
            report.contributors == place.workers && report.uniform,
            "round {round} holds {} gradients (uniform: {}), expected {}",
            report.contributors,
            report.uniform,
            place.workers
        );
        anyhow::ensure!(
            report.number == Round::new(first).plus(round).get(),
            "round {} follows round {first} + {round}",
            report.number
        );
        let votes = has_time.and_then(|_| vector.pop());
        if let Err(wrong) = values.check(&vector, round) {
            return Ok(Err(wrong));
        }
        vector.extend(votes);
        if votes.is_some_and(|votes| votes > 0.0) {
            break;
        }
    }
    Ok(Ok(times))
}

/// What this worker contributes, and what the sums must be.
struct Values {
    place: Place,
    /// This worker's share of each element that is the same in all rounds.
    own: Vec<f32>,
    /// The sum of these over all workers.
    sum: Vec<f32>,
}

impl Values {
    fn new(place: Place, floats: u32) -> Self {
        let own = (0..floats).map(|element| integer(place.rank, ELEMENT_SALT ^ element)).collect();
        let all = |element| (0..place.workers).map(|rank| integer(rank, ELEMENT_SALT ^ element)).sum();
        Self { place, own, sum: (0..floats).map(all).collect() }
    }

    fn fill(&self, vector: &mut [f32], round: u32) {
        let share = integer(self.place.rank, ROUND_SALT ^ round);
        vector.iter_mut().zip(&self.own).for_each(|(to, own)| *to = own + share);
    }

    fn check(&self, vector: &[f32], round: u32) -> Result<(), WrongSum> {
        let share: f32 = (0..self.place.workers).map(|rank| integer(rank, ROUND_SALT ^ round)).sum();
        match vector.iter().zip(&self.sum).position(|(got, sum)| *got != sum + share) {
            None => Ok(()),
            Some(element) => {
                Err(WrongSum { round, element, got: vector[element], expected: self.sum[element] + share })
            }
        }
    }
}

const ELEMENT_SALT: u32 = 0x9e37_79b9;
const ROUND_SALT: u32 = 0x7f4a_7c15;

/// An integer of 16 bits that looks random: with a share for the element and one for the round, the sum over
/// [`MAX_MEMBERS`] workers needs 23 of the 24 bits that an f32 holds exactly.
fn integer(rank: u16, place: u32) -> f32 {
    // The finaliser of MurmurHash3.
    let mut x = place.wrapping_add(u32::from(rank).wrapping_mul(0x85eb_ca77));
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    ((x ^ (x >> 16)) & 0xffff) as f32
}

const _: () = assert!(MAX_MEMBERS * 2 * 0xffff < 1 << f32::MANTISSA_DIGITS);

impl Outcome {
    fn render(&self, cli: &Cli, place: Place) -> String {
        // The first round waits for the others to learn that all have joined.
        let mut sorted = self.times.get(1..).unwrap_or_default().to_vec();
        sorted.sort_unstable();
        let quantile = |q: f64| {
            let at = (sorted.len() as f64 * q) as usize;
            sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        let (p50, p99) = (quantile(0.5), quantile(0.99));
        let megabits = f64::from(cli.floats) * 32.0 / p50.max(1e-3);
        let Place { rank, workers } = place;
        let AggregatorStats { rounds, segments, retransmitted } = self.stats;
        if cli.json {
            let result = serde_json::json!({
                "rank": rank, "workers": workers, "floats": cli.floats, "rounds": rounds, "exact": true,
                "us_p50": p50, "us_p99": p99, "goodput_mbit_s": megabits,
                "segments": segments, "retransmitted": retransmitted,
            });
            return result.to_string();
        }
        let mut line = format!("rank {rank}/{workers}: {rounds} rounds of {} floats exact", cli.floats);
        let _ = write!(line, ", p50 {p50:.0} us, p99 {p99:.0} us, {megabits:.0} Mbit/s");
        let _ = write!(line, ", {segments} segments, {retransmitted} retransmitted");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl Fn(&mut [Vec<f32>])) -> Result<(), WrongSum> {
        let place = |rank| Place { rank, workers: 3 };
        let mut vectors: Vec<_> = (0..3)
            .map(|rank| {
                let mut vector = vec![0.0; 1000];
                Values::new(place(rank), 1000).fill(&mut vector, 5);
                vector
            })
            .collect();
        change(&mut vectors);
        let sum: Vec<f32> = (0..1000).map(|at| vectors.iter().map(|vector| vector[at]).sum()).collect();
        Values::new(place(0), 1000).check(&sum, 5)
    }

    #[test]
    fn the_right_sum_passes() {
        assert_eq!(check(|_| ()), Ok(()));
    }

    #[test]
    fn wrong_sums_are_found() {
        let twice = check(|vectors| vectors[1] = vectors[2].clone()).unwrap_err();
        assert_eq!((twice.round, twice.element), (5, 0));
        let missing = check(|vectors| vectors[2][700..].fill(0.0)).unwrap_err();
        assert_eq!(missing.element, 700);
        check(|vectors| vectors[0].copy_within(366..732, 0)).unwrap_err();
        check(|vectors| Values::new(Place { rank: 0, workers: 3 }, 1000).fill(&mut vectors[0], 4))
            .unwrap_err();
    }
}
