//! What a storm of forged Joins costs the members of a job: memory of the switch, and goodput.
//!
//! Four workers in network namespaces sum vectors through an iswitchd without a pause, and check every sum. A
//! fifth namespace sends forged Joins in turns, between turns without. The goodput of a turn is what the switch
//! has summed in it. Sender, switch and workers share the machine: what the sender takes of it is missing to
//! the workers, whatever the switch does, so its rate matters. With `--decoy` the turns without forged Joins
//! have as many frames that the switch's packet filter drops. Needs root.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use iswitch_harness::cluster::{Daemon, Group, SOON, total};
use iswitch_harness::netns::{Namespace, Star, StarOptions};
use iswitch_harness::requirements::networks_and;
use iswitch_protocol::limits::DEFAULT_SEGMENT_FLOATS;
use iswitch_testbench::spread::Spread;
use iswitch_testbench::storm::{Kind, Storm};
use serde_json::json;

const WORKERS: usize = 4;
/// What must hold.
const MAX_RSS_GROWTH_KIB: i64 = 1024;
const MIN_GOODPUT_RATIO: f64 = 0.9;
/// Time in which workers join and leave.
const MARGIN: Duration = Duration::from_secs(10);

/// Measures what forged Joins cost the members of a job.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Forged Joins
    #[arg(long, default_value_t = 1_000_000)]
    joins: u64,
    /// Forged Joins a second
    #[arg(long, default_value_t = 50_000)]
    rate: u64,
    /// Turns with forged Joins; before each there is one without
    #[arg(long, default_value_t = 20)]
    turns: u64,
    /// Floats in the vector of the job
    #[arg(long, default_value_t = 100_000)]
    floats: u32,
    /// Send as many frames that are not for the switch in the turns without forged Joins
    #[arg(long)]
    decoy: bool,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Goodput of a pair of turns, in Mbit/s of gradients, and forged Joins a second.
struct Pair {
    without: f64,
    during: f64,
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
    anyhow::ensure!(cli.turns > 0 && cli.rate > 0, "--turns and --rate are at least 1");
    let star = Star::new(StarOptions { workers: WORKERS + 1, ..StarOptions::default() });
    let (workers, attacker) = (&star.workers[..WORKERS], &star.workers[WORKERS]);
    let daemon = Daemon::on_ports(&star, &[]);
    // A sender that is too slow for its rate may take twice the time.
    let seconds = 4.0 * cli.joins as f64 / cli.rate as f64 + MARGIN.as_secs_f64();
    let arguments = format!("--floats {} --rounds 100000000 --seconds {seconds}", cli.floats);
    let group = Group::of(workers, daemon.address(), &arguments);
    // Both rounds' memory is touched by then.
    daemon.wait_until_results(4 * u64::from(cli.floats.div_ceil(u32::from(DEFAULT_SEGMENT_FLOATS))));
    let rss_before_kib = daemon.process.rss_kib();
    let pairs = (0..cli.turns)
        .map(|turn| measure_pair(cli, &daemon, attacker, turn))
        .collect::<Result<Vec<_>, _>>()?;
    let rss_after_kib = daemon.process.rss_kib();
    let drops = daemon.counters()["drops"].clone();
    let results = group.results(Duration::from_secs_f64(seconds) + SOON);
    let of_pairs = |of: fn(&Pair) -> f64| Spread::of(pairs.iter().map(of));
    let ratio = of_pairs(|pair| pair.during / pair.without);
    let growth_kib = rss_after_kib as i64 - rss_before_kib as i64;
    let holds = growth_kib <= MAX_RSS_GROWTH_KIB && ratio.median >= MIN_GOODPUT_RATIO;
    let report = json!({
        "joins": cli.joins, "rate": cli.rate, "rate_reached": of_pairs(|pair| pair.rate).median,
        "turns": cli.turns, "floats": cli.floats, "decoy": cli.decoy,
        "rss_before_kib": rss_before_kib, "rss_after_kib": rss_after_kib,
        "goodput_without_mbit_s": of_pairs(|pair| pair.without).median,
        "goodput_during_mbit_s": of_pairs(|pair| pair.during).median,
        "ratio_median": ratio.median, "ratio_min": ratio.least, "ratio_max": ratio.greatest,
        "rate_limited": drops["rate_limited"], "join_refused": drops["join_refused"],
        "rounds_exact": total(&results, "rounds") / WORKERS as u64, "holds": holds,
    });
    daemon.stop();
    print(cli, &report);
    Ok(holds)
}

fn measure_pair(cli: &Cli, daemon: &Daemon, attacker: &Namespace, turn: u64) -> anyhow::Result<Pair> {
    let joins = (cli.joins / cli.turns).max(1);
    let calm = Duration::from_secs_f64(joins as f64 / cli.rate as f64);
    let measure = |kind: Option<Kind>| {
        let (begin, before) = (Instant::now(), daemon.results());
        match kind {
            Some(kind) => attacker
                .enter(|| Storm::open(turn)?.send(kind, joins, cli.rate))
                .context("cannot send frames")?,
            None => std::thread::sleep(calm),
        }
        let seconds = begin.elapsed().as_secs_f64();
        let bits = (daemon.results() - before) as f64 * f64::from(DEFAULT_SEGMENT_FLOATS) * 32.0;
        anyhow::Ok((bits / seconds / 1e6, joins as f64 / seconds))
    };
    let without = || measure(cli.decoy.then_some(Kind::Decoy));
    // Each comes first as often as the other.
    let early = if turn.is_multiple_of(2) { Some(without()?) } else { None };
    let (during, rate) = measure(Some(Kind::Join))?;
    let (without, _) = early.map_or_else(without, Ok)?;
    Ok(Pair { without, during, rate })
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
