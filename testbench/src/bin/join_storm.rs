//! Cost that a storm of forged Joins imposes on the members of a job: the memory that the switch uses, and the
//! goodput of the job.
//!
//! Four workers in network namespaces continuously sum vectors through `iswitchd` and check every sum. In every second
//! turn, a fifth namespace sends forged Joins. The goodput of a turn is the rate at which the switch sums gradient
//! data. Because the sender, the switch and the workers share one machine, the processor time of the sender is lost to
//! the workers regardless of how the switch behaves, so the sender's rate matters. With `--decoy`, the fifth namespace
//! sends the same number of frames in the other turns, but the switch's packet filter drops them. Needs root.

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use iswitch_harness::cluster::{Daemon, Group, SOON, total};
use iswitch_harness::netns::{Namespace, Star, StarOptions};
use iswitch_harness::requirements::networks_and;
use iswitch_protocol::limits::DEFAULT_SEGMENT_FLOATS;
use iswitch_testbench::contest::{Contest, Progress};
use iswitch_testbench::storm::{Kind, Storm};
use serde_json::json;

const WORKERS: usize = 4;
/// Maximum accepted growth of the daemon's resident memory, in KiB.
const MAX_RSS_GROWTH_KIB: i64 = 1024;
const MIN_GOODPUT_RATIO: f64 = 0.9;
/// Time that a run allows for the workers to join and leave.
const MARGIN: Duration = Duration::from_secs(10);

/// Measure the cost of forged Joins to the members of a job
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Number of forged Joins
    #[arg(long, default_value_t = 1_000_000)]
    joins: u64,
    /// Rate of forged Joins, in packets per second
    #[arg(long, default_value_t = 50_000)]
    rate: u64,
    /// Number of turns with forged Joins
    ///
    /// A turn without forged Joins precedes each of them.
    #[arg(long, default_value_t = 20)]
    turns: u64,
    /// Number of floats in the vector of the job
    #[arg(long, default_value_t = 100_000)]
    floats: u32,
    /// Send frames that are not for the switch in the turns without forged Joins
    ///
    /// As many of these frames are sent as forged Joins, and at the same rate.
    #[arg(long)]
    decoy: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Additional traffic that is sent to the switch during a turn.
#[derive(Clone, Copy, Debug)]
enum BackgroundTraffic {
    /// No frames, or frames that are not for the switch.
    Calm(Option<Kind>),
    Storm,
}

impl fmt::Display for BackgroundTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calm(None) => "no frames",
            Self::Calm(Some(_)) => "frames for others",
            Self::Storm => "forged Joins",
        })
    }
}

/// Result of one turn.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Goodput, in Mbit/s of gradients.
    goodput: f64,
    /// Rate of forged Joins, in packets per second.
    rate: f64,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !networks_and("join_storm", &[]) {
        return ExitCode::FAILURE;
    }
    match run(&cli) {
        Ok(holds) => ExitCode::from(u8::from(!holds)),
        Err(error) => {
            eprintln!("join_storm: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<bool> {
    let (turns, rate) = (cli.turns, cli.rate);
    anyhow::ensure!(
        turns > 0 && rate > 0,
        "--turns is {turns} and --rate is {rate}, expected at least 1 for each"
    );
    let star = Star::new(StarOptions { workers: WORKERS + 1, ..StarOptions::default() });
    let (workers, attacker) = (&star.workers[..WORKERS], &star.workers[WORKERS]);
    let daemon = Daemon::on_ports(&star, &[]);
    // All turns together take `2 * joins / rate` seconds, or twice as long if the sender cannot reach its rate.
    let seconds = 4.0 * cli.joins as f64 / cli.rate as f64 + MARGIN.as_secs_f64();
    let arguments = format!("--floats {} --rounds 100000000 --seconds {seconds}", cli.floats);
    let group = Group::of(workers, daemon.address(), &arguments);
    // After this number of results, the switch has used the memory of two consecutive rounds, so that its memory does
    // not grow further without forged Joins.
    daemon.wait_until_results(4 * u64::from(cli.floats.div_ceil(u32::from(DEFAULT_SEGMENT_FLOATS))));
    let rss_before_kib = daemon.process.rss_kib();
    let calm = BackgroundTraffic::Calm(cli.decoy.then_some(Kind::Decoy));
    let standings = Contest::new([calm, BackgroundTraffic::Storm], cli.turns as usize)
        .try_hold(&Progress::new(), |background, turn| {
            measure(cli, &daemon, attacker, *background, turn.index)
        })?;
    let rss_after_kib = daemon.process.rss_kib();
    let drops = daemon.counters()["drops"].clone();
    let results = group.results(Duration::from_secs_f64(seconds) + SOON);
    let (calm, storm) = (standings.reference(), &standings.rows[1]);
    let ratio = storm.ratio_to(calm, |run| run.goodput);
    let growth_kib = rss_after_kib as i64 - rss_before_kib as i64;
    let holds = growth_kib <= MAX_RSS_GROWTH_KIB && ratio.median >= MIN_GOODPUT_RATIO;
    let report = json!({
        "joins": cli.joins, "rate": cli.rate, "rate_reached": storm.spread(|run| run.rate).median,
        "turns": cli.turns, "floats": cli.floats, "decoy": cli.decoy,
        "rss_before_kib": rss_before_kib, "rss_after_kib": rss_after_kib,
        "goodput_without_mbit_s": calm.spread(|run| run.goodput).median,
        "goodput_during_mbit_s": storm.spread(|run| run.goodput).median,
        "ratio_median": ratio.median, "ratio_min": ratio.least, "ratio_max": ratio.greatest,
        "rate_limited": drops["rate_limited"], "join_refused": drops["join_refused"],
        "rounds_exact": total(&results, "rounds") / WORKERS as u64, "holds": holds,
    });
    daemon.stop();
    print(cli, &report);
    Ok(holds)
}

fn measure(
    cli: &Cli,
    daemon: &Daemon,
    attacker: &Namespace,
    background: BackgroundTraffic,
    turn: usize,
) -> anyhow::Result<Run> {
    let joins = (cli.joins / cli.turns).max(1);
    let (begin, before) = (Instant::now(), daemon.results());
    match background {
        BackgroundTraffic::Calm(None) => {
            std::thread::sleep(Duration::from_secs_f64(joins as f64 / cli.rate as f64));
        }
        BackgroundTraffic::Calm(Some(kind)) => send(cli, attacker, kind, joins, turn)?,
        BackgroundTraffic::Storm => send(cli, attacker, Kind::Join, joins, turn)?,
    }
    let seconds = begin.elapsed().as_secs_f64();
    let bits = (daemon.results() - before) as f64 * f64::from(DEFAULT_SEGMENT_FLOATS) * 32.0;
    Ok(Run { goodput: bits / seconds / 1e6, rate: joins as f64 / seconds })
}

fn send(cli: &Cli, attacker: &Namespace, kind: Kind, joins: u64, turn: usize) -> anyhow::Result<()> {
    let sent = attacker.enter(|| Storm::open(turn as u64)?.send(kind, joins, cli.rate));
    sent.context("cannot send frames")
}

fn print(cli: &Cli, report: &serde_json::Value) {
    if cli.json {
        println!("{report}");
        return;
    }
    for (name, value) in report.as_object().into_iter().flatten() {
        println!("{name:24} {value}");
    }
}
