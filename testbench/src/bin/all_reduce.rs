//! Checks and times all-reduce through a switch, as nccl-tests does.
//!
//! Every worker of a job runs one instance. For the requested number of rounds, it checks each element of each sum: a
//! segment must equal the sum of the gradients of the workers that contributed to it, and count each of these workers
//! once.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Parser;
use iswitch::worker::protocol::WorkerCounters;
use iswitch::{AggregateError, ElementTypes, GradientAggregator, JoinOptions, Label, Worker, key_file};
use iswitch_harness::witness::{Census, Witness, Wrong};
use iswitch_protocol::Round;
use iswitch_protocol::limits::{MAX_JOB_NAME_LEN_BYTES, MAX_MEMBERS};

/// Exit status if a sum is wrong.
const WRONG_SUM: u8 = 1;
/// Exit status if the check could not be completed.
const NOT_CHECKED: u8 = 2;
/// Interval between two attempts to contribute to a halted job.
const HALT_POLL: Duration = Duration::from_millis(10);
/// Minimum duration of a round that is written to the `--long-rounds` file.
const LONG_ROUND: Duration = Duration::from_millis(5);

/// Check and time all-reduce through a switch
#[derive(Clone, Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Address of the switch
    #[arg(long, value_name = "ADDR:PORT")]
    switch: SocketAddrV4,
    /// Addresses of further switches, to which the workers move if one fails
    #[arg(long, value_name = "ADDR:PORT,...", value_delimiter = ',')]
    standby: Vec<SocketAddrV4>,
    /// Number of workers [default: OMPI_COMM_WORLD_SIZE or WORLD_SIZE]
    #[arg(long)]
    workers: Option<u16>,
    /// Minimum number of workers in a sum if some are absent [default: all]
    #[arg(long)]
    min_workers: Option<u16>,
    /// Rank of this worker, starting from 0 [default: OMPI_COMM_WORLD_RANK or RANK]
    #[arg(long)]
    rank: Option<u16>,
    /// Number of floats in the vector
    #[arg(long, default_value_t = 10_119)]
    floats: u32,
    /// Number of rounds to check
    ///
    /// If one worker receives SIGTERM, all workers end after the same round.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Maximum time to run, in seconds [default: no limit]
    ///
    /// All workers end after the round in which one of them first reaches this time.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Number of floats in a packet [default: as many as fit in an MTU of 1500 bytes]
    #[arg(long)]
    segment_floats: Option<u16>,
    /// Timeout of a round, in milliseconds [default: none]
    ///
    /// A round that does not complete within the timeout is aborted and started again.
    #[arg(long, value_name = "MS")]
    patience_ms: Option<u64>,
    /// Wait while the job is halted, instead of ending with an error
    #[arg(long)]
    wait_if_halted: bool,
    /// File for rounds of 5 ms or more; the rank is appended to its name
    ///
    /// Each line contains the start of a round, in milliseconds since the Unix epoch, and its duration in
    /// milliseconds. A round that is repeated, for example after a halt, counts once, with its total duration.
    #[arg(long, value_name = "FILE")]
    long_rounds: Option<PathBuf>,
    /// Identifier of the job
    #[arg(long, default_value_t = 0)]
    job: u32,
    /// Name of the job in the status of the switch [default: none]
    #[arg(long, value_name = "TEXT", default_value = "")]
    job_name: Label<MAX_JOB_NAME_LEN_BYTES>,
    /// File with the key of the job
    #[arg(long, value_name = "PATH", env = "ISWITCH_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Tag data packets with the key, as well as control packets
    #[arg(long, requires = "key_file")]
    tag_data: bool,
    /// Element types of packets: f32, bf16, f16, bf16-f32, f16-f32
    ///
    /// With bf16-f32 and f16-f32, contributions have 16-bit elements, and results have 32-bit elements.
    #[arg(long, value_name = "TYPES", default_value_t = ElementTypes::F32)]
    wire: ElementTypes,
    /// Send and receive only one datagram in each system call
    #[arg(long)]
    no_offload: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Rank of a worker and the world size.
#[derive(Clone, Copy, Debug)]
struct World {
    rank: u16,
    size: u16,
}

/// Round whose sum is wrong, and the error in that sum.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WrongSum {
    round: u32,
    wrong: Wrong,
}

/// Results of the checks and measurements.
#[derive(Debug, Default)]
struct Outcome {
    /// Time of each round, from the moment when the worker has written its gradient until the whole sum has arrived.
    /// The time includes waiting for slower workers.
    times: Vec<Duration>,
    /// Total time of all rounds, including the worker's own work between them.
    elapsed: Duration,
    /// Number of rounds in which some segment lacks the gradient of at least one worker.
    partial_rounds: u32,
    /// Number of rounds in which not all segments contain the same number of gradients.
    mixed_rounds: u32,
    /// Number of rounds that the other workers completed while this worker was absent.
    missed_rounds: u32,
    /// Number of times that a round exceeded the timeout of the worker.
    stalls: u32,
    /// Number of stalls (rounds that exceeded the timeout) during which the switch had lost its parent.
    orphaned_stalls: u32,
    /// Number of times that the switch forgot this worker and the worker rejoined.
    rejoins: u64,
    counters: WorkerCounters,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match World::of(&cli).and_then(|world| run(&cli, world).map(|outcome| (world, outcome))) {
        Ok((world, Ok(outcome))) => {
            println!("{}", outcome.render(&cli, world));
            ExitCode::SUCCESS
        }
        Ok((world, Err(WrongSum { round, wrong }))) => {
            eprintln!("all_reduce: rank {} round {round}: {wrong}", world.rank);
            ExitCode::from(WRONG_SUM)
        }
        Err(error) => {
            eprintln!("all_reduce: {error:#}");
            ExitCode::from(NOT_CHECKED)
        }
    }
}

impl World {
    /// Takes the rank and the number of workers from the command line, or from the environment variables that the
    /// launcher sets.
    fn of(cli: &Cli) -> anyhow::Result<Self> {
        let rank = cli.rank.map_or_else(|| from_launcher(["OMPI_COMM_WORLD_RANK", "RANK"], "--rank"), Ok)?;
        let workers = cli
            .workers
            .map_or_else(|| from_launcher(["OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"], "--workers"), Ok)?;
        anyhow::ensure!(
            rank < workers,
            "rank is {rank}, expected less than the number of workers ({workers})"
        );
        anyhow::ensure!(
            usize::from(workers) <= MAX_MEMBERS,
            "number of workers is {workers}, expected at most {MAX_MEMBERS}"
        );
        Ok(Self { rank, size: workers })
    }
}

fn from_launcher(variables: [&str; 2], option: &str) -> anyhow::Result<u16> {
    let found = variables.iter().find_map(|name| Some((name, std::env::var(name).ok()?)));
    let (name, value) = found.with_context(|| format!("{option} is missing; specify it or use mpirun"))?;
    value.parse().with_context(|| format!("{name}={value}"))
}

fn run(cli: &Cli, world: World) -> anyhow::Result<Result<Outcome, WrongSum>> {
    let is_asked_to_end = Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&is_asked_to_end))?;
    let mut options = JoinOptions::new(cli.switch, world.size, cli.floats).with_elements(cli.wire);
    options.standbys.clone_from(&cli.standby);
    options.job = cli.job;
    options.rank = world.rank;
    (options.name.job, options.name.rank) = (cli.job_name, Some(world.rank));
    if let Some(path) = &cli.key_file {
        let key = key_file::read(path).with_context(|| format!("cannot use key file {}", path.display()))?;
        options = options.with_key(key, cli.tag_data);
    }
    options.segment_floats = cli.segment_floats.unwrap_or(options.segment_floats);
    options.offload = !cli.no_offload;
    options.round_timeout = cli.patience_ms.map(Duration::from_millis);
    options.workers_timeout = Some(Duration::from_secs(60));
    let witness = |segment_floats| make_witness(cli.floats as usize, segment_floats, cli.wire, world);
    // Checks the options before the worker joins.
    witness(options.segment_floats)?;
    let mut worker = Worker::join(options)?;
    let witness = witness(worker.segment_floats())?;
    let outcome = check_rounds(cli, world, witness, &mut worker, &is_asked_to_end)?;
    Ok(outcome.map(|outcome| Outcome { counters: worker.counters(), rejoins: worker.rejoins(), ..outcome }))
}

fn make_witness(
    floats: usize,
    segment_floats: u16,
    elements: ElementTypes,
    world: World,
) -> anyhow::Result<Witness> {
    let census = Witness::census_floats(usize::from(world.size), elements);
    let segment_floats = usize::from(segment_floats);
    let last = floats.checked_rem(segment_floats).context("--segment-floats is 0, expected at least 2")?;
    let shortest = if last == 0 { segment_floats.min(floats) } else { last };
    anyhow::ensure!(
        shortest > census,
        "--floats {floats} leaves {shortest} floats for the last segment, expected more than {census}: {census} \
         to count workers, and one to vote"
    );
    let (rank, workers) = (usize::from(world.rank), usize::from(world.size));
    Ok(Witness::new(rank, workers, floats, segment_floats, elements))
}

fn check_rounds(
    cli: &Cli,
    world: World,
    mut witness: Witness,
    worker: &mut Worker,
    is_asked_to_end: &AtomicBool,
) -> anyhow::Result<Result<Outcome, WrongSum>> {
    let begin = Instant::now();
    let mut vector = vec![0.0; cli.floats as usize];
    let last = vector.len() - 1;
    let mut outcome = Outcome::default();
    let mut numbers = Numbers::new(worker);
    let mut long_rounds =
        cli.long_rounds.as_deref().map(|path| LongRounds::create(path, world)).transpose()?;
    let mut round = 0;
    while round < cli.rounds {
        witness.fill(&mut vector, round);
        // The last element is a vote to stop, so that all workers end after the same round.
        let is_late = cli.seconds.is_some_and(|seconds| begin.elapsed().as_secs_f64() >= seconds);
        let wants_to_end = is_late || is_asked_to_end.load(Ordering::Relaxed);
        vector[last] = f32::from(u8::from(wants_to_end));
        let start = Instant::now();
        let report = match worker.all_reduce(&mut vector) {
            Err(AggregateError::MissedRounds { next }) => {
                let missed = numbers.missed(next, round);
                outcome.missed_rounds += missed;
                round += missed;
                continue;
            }
            Err(AggregateError::Stalled { parent_lost, .. }) => {
                outcome.stalls += 1;
                outcome.orphaned_stalls += u32::from(parent_lost);
                continue;
            }
            Err(AggregateError::Halted) if cli.wait_if_halted => {
                std::thread::sleep(HALT_POLL);
                continue;
            }
            report => report.with_context(|| format!("round {round}"))?,
        };
        outcome.times.push(start.elapsed());
        long_rounds.as_mut().map_or(Ok(()), LongRounds::round_ended)?;
        numbers.check(report.number, round, worker)?;
        let census = match witness.check(&vector[..last], round) {
            Ok(census) => census,
            Err(wrong) => return Ok(Err(WrongSum { round, wrong })),
        };
        outcome.count(&census, &report, round, world.size, cli.min_workers)?;
        if vector[last] > 0.0 {
            break;
        }
        round += 1;
    }
    outcome.elapsed = begin.elapsed();
    Ok(Ok(outcome))
}

/// Writer that records long rounds.
struct LongRounds {
    file: File,
    /// End of the preceding round.
    since: Instant,
}

impl LongRounds {
    fn create(path: &Path, world: World) -> anyhow::Result<Self> {
        let path = format!("{}.{}", path.display(), world.rank);
        let file = File::create(&path).with_context(|| format!("--long-rounds {path}"))?;
        Ok(Self { file, since: Instant::now() })
    }

    fn round_ended(&mut self) -> anyhow::Result<()> {
        let duration = self.since.elapsed();
        self.since = Instant::now();
        if duration < LONG_ROUND {
            return Ok(());
        }
        let end = SystemTime::now().duration_since(UNIX_EPOCH).context("the system clock is before 1970")?;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        writeln!(self.file, "{:.3} {:.3}", ms(end) - ms(duration), ms(duration)).context("--long-rounds")
    }
}

/// Offset between the job's round numbers and the numbers of this program, which counts rounds from zero. A restarted
/// switch renumbers the rounds.
struct Numbers {
    /// Number that the job gives to round 0 of this program.
    base: u32,
    /// Total number of rejoins after each of the last two rounds, the earlier round first.
    rejoins: [u64; 2],
}

impl Numbers {
    fn new(worker: &Worker) -> Self {
        Self { base: worker.membership().start.get(), rejoins: [worker.rejoins(); 2] }
    }

    /// Returns the number of rounds between the expected round and round `number` of the job.
    fn missed(&self, number: u32, round: u32) -> u32 {
        Round::new(number.wrapping_sub(self.base.wrapping_add(round))).get()
    }

    /// Checks that each round follows the previous one, unless the worker has rejoined in this round or in the
    /// previous one. In the latter case, the first part of the vector, which determines the number of the round, may
    /// have been completed before the other parts caused the worker to move to another switch.
    fn check(&mut self, number: u32, round: u32, worker: &Worker) -> anyhow::Result<()> {
        let [before, last] = self.rejoins;
        let gap = self.missed(number, round);
        anyhow::ensure!(
            gap == 0 || worker.rejoins() > before,
            "round {round} is {gap} rounds later than expected"
        );
        *self = Self { base: self.base.wrapping_add(gap), rejoins: [last, worker.rejoins()] };
        Ok(())
    }
}

impl Outcome {
    /// Checks the number of gradients in a sum against the report of the switch, and counts incomplete rounds.
    fn count(
        &mut self,
        census: &Census,
        report: &iswitch::Round,
        round: u32,
        workers: u16,
        min_workers: Option<u16>,
    ) -> anyhow::Result<()> {
        let Census { fewest, most } = *census;
        anyhow::ensure!(
            report.contributors == fewest && report.uniform == (fewest == most),
            "the switch reports {} gradients for round {round} (uniform: {}), but segments contain {fewest} to {most}",
            report.contributors,
            report.uniform
        );
        let least = min_workers.unwrap_or(workers);
        anyhow::ensure!(
            fewest >= least,
            "a segment of round {round} contains only {fewest} gradients, expected at least {least} (--min-workers)"
        );
        self.partial_rounds += u32::from(fewest < workers);
        self.mixed_rounds += u32::from(fewest < most);
        Ok(())
    }

    fn render(&self, cli: &Cli, world: World) -> String {
        // The first round is excluded, because it includes the time until this worker learns that all others have
        // joined.
        let mut sorted = self.times.get(1..).unwrap_or_default().to_vec();
        sorted.sort_unstable();
        let quantile = |q: f64| {
            let at = (sorted.len() as f64 * q) as usize;
            sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        let (p50, p99, max) = (quantile(0.5), quantile(0.99), quantile(1.0));
        let megabits = f64::from(cli.floats) * 32.0 / p50.max(1e-3);
        let World { rank, size: workers } = world;
        let WorkerCounters { rounds, segments, retransmitted, helps, .. } = self.counters;
        if cli.json {
            let result = serde_json::json!({
                "rank": rank, "workers": workers, "floats": cli.floats, "rounds": rounds, "exact": true,
                "partial_rounds": self.partial_rounds, "mixed_rounds": self.mixed_rounds,
                "missed_rounds": self.missed_rounds, "rejoins": self.rejoins,
                "stalls": self.stalls, "orphaned_stalls": self.orphaned_stalls,
                "us_p50": p50, "us_p99": p99, "us_max": max, "goodput_mbit_s": megabits,
                "seconds": self.elapsed.as_secs_f64(),
                "segments": segments, "retransmitted": retransmitted, "helps": helps,
            });
            return result.to_string();
        }
        let mut line = format!("rank {rank}/{workers}: {rounds} exact rounds of {} floats", cli.floats);
        let _ = write!(line, ", p50 {p50:.0} us, p99 {p99:.0} us, {megabits:.0} Mbit/s");
        let _ = write!(line, ", {segments} segments, {retransmitted} retransmitted");
        if self.partial_rounds > 0 {
            let _ = write!(line, ", {} rounds without all workers", self.partial_rounds);
        }
        line
    }
}
