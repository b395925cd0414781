//! Cost of packet loss: rounds without loss and with 1 % loss, in alternating turns, on real frames between namespaces.
//!
//! The promise about packet loss has two parts: the median round takes at most [`PROMISED_RATIO`] times as long with
//! loss as without, plus one timeout; and a run sends at most [`PROMISED_PACKETS`] times as many packets as it needs.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use iswitch::worker::MIN_TIMEOUT;
use iswitch_harness::cluster::{Daemon, Group, total};
use iswitch_harness::faults::{self, Faults};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::requirements::networks_and;
use iswitch_protocol::limits::DEFAULT_SEGMENT_FLOATS;
use iswitch_testbench::contest::{Contest, Progress, Spread};
use serde_json::{Value, json};

const LOSS_PERMILLE: u32 = 10;
const PROMISED_RATIO: f64 = 1.5;
const PROMISED_PACKETS: f64 = 1.12;
const TIMEOUT: Duration = Duration::from_secs(300);

/// Measure the cost of 1 % packet loss
///
/// Needs root.
#[derive(Clone, Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Number of pairs of runs (without and with loss) for each kind of round
    #[arg(long, default_value_t = 7)]
    pairs: usize,
    /// Number of workers of the job
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// Print the results as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Kind of round that is measured.
#[derive(Clone, Copy, Debug)]
struct Load {
    floats: u32,
    /// Number of rounds in one run.
    rounds: u32,
    /// Whether offload is on. With offload, a super-frame is lost as a whole; without it, each packet is lost
    /// independently.
    offload: bool,
}

/// Vectors of the paper's smallest and largest neural networks, with and without offload.
const LOADS: [Load; 4] = [
    Load { floats: 10_119, rounds: 500, offload: true },
    Load { floats: 10_119, rounds: 200, offload: false },
    Load { floats: 1_687_206, rounds: 20, offload: true },
    Load { floats: 1_687_206, rounds: 8, offload: false },
];

/// One run of a job.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Median round time of worker 0, in microseconds.
    us_p50: f64,
    /// Number of packets sent, divided by the number of data packets that a job without loss sends.
    packets: f64,
}

/// Condition of the network in a turn.
#[derive(Clone, Copy, Debug, strum::Display)]
enum Network {
    #[strum(to_string = "no loss")]
    Lossless,
    #[strum(to_string = "1 % loss")]
    Lossy,
}

/// Measurements of one kind of round.
#[derive(Clone, Copy, Debug)]
struct Cost {
    load: Load,
    lossless_us: Spread,
    lossy_us: Spread,
    /// Median round time with loss, divided by the median round time without loss in the same turn.
    ratio: Spread,
    /// Time by which a lossy round exceeds [`PROMISED_RATIO`] times the lossless round of the same turn, in
    /// microseconds.
    excess_us: Spread,
    packets: Spread,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if !networks_and("loss_cost", &[]) {
        return ExitCode::FAILURE;
    }
    let costs: Vec<_> = LOADS
        .into_iter()
        .map(|load| {
            let cost = measure(&cli, load);
            if !cli.json {
                println!("{}", cost.line());
            }
            cost
        })
        .collect();
    if cli.json {
        println!("{}", Value::from(costs.iter().map(Cost::json).collect::<Vec<_>>()));
    }
    ExitCode::SUCCESS
}

fn measure(cli: &Cli, load: Load) -> Cost {
    let star = Star::new(StarOptions { workers: cli.workers, ..StarOptions::default() });
    let option: &[&str] = if load.offload { &[] } else { &["--no-offload"] };
    let daemon = Daemon::on_ports(&star, option);
    let contest = Contest::new([Network::Lossless, Network::Lossy], cli.pairs.max(1));
    let unit = if load.offload { "super-frames" } else { "packets" };
    let contest = contest.titled(format!("{} floats in {unit}", load.floats));
    // Each run has a job of its own, because the previous job still exists if a Leave was lost.
    let standings = contest.hold(&Progress::new(), |network, turn| match network {
        Network::Lossless => run(&star, &daemon, load, 2 * turn.index),
        Network::Lossy => {
            let faults = Faults { loss_permille: LOSS_PERMILLE, ..Faults::default() };
            star.workers.iter().for_each(|worker| faults.inject(worker));
            let outcome = run(&star, &daemon, load, 2 * turn.index + 1);
            star.workers.iter().for_each(faults::remove);
            outcome
        }
    });
    daemon.stop();
    let (lossless, lossy) = (standings.reference(), &standings.rows[1]);
    Cost {
        load,
        lossless_us: lossless.spread(|run| run.us_p50),
        lossy_us: lossy.spread(|run| run.us_p50),
        ratio: lossy.ratio_to(lossless, |run| run.us_p50),
        excess_us: lossy.beside(lossless, |lossy, lossless| lossy.us_p50 - PROMISED_RATIO * lossless.us_p50),
        packets: lossy.spread(|run| run.packets),
    }
}

fn run(star: &Star, daemon: &Daemon, load: Load, job: usize) -> Run {
    let Load { floats, rounds, offload } = load;
    let sent = || daemon.traffic("data_sent") + daemon.traffic("control_sent");
    let before = sent();
    let option = if offload { "" } else { "--no-offload" };
    let arguments = format!("--floats {floats} --rounds {rounds} --job {job} {option}");
    let results = Group::in_star(star, daemon.address(), &arguments).results(TIMEOUT);
    let down = sent() - before;
    let up: u64 = ["segments", "retransmitted", "helps"].iter().map(|field| total(&results, field)).sum();
    let segments = u64::from(floats.div_ceil(u32::from(DEFAULT_SEGMENT_FLOATS)));
    let needed = 2 * segments * u64::from(rounds) * star.workers.len() as u64;
    Run {
        us_p50: results[0]["us_p50"].as_f64().expect("us_p50 must be a number"),
        packets: (up + down) as f64 / needed as f64,
    }
}

impl Cost {
    /// Returns whether the medians over all turns keep the promise about packet loss.
    fn is_kept(&self) -> bool {
        self.excess_us.median <= MIN_TIMEOUT.as_secs_f64() * 1e6 && self.packets.median <= PROMISED_PACKETS
    }

    fn line(&self) -> String {
        let Load { floats, offload, .. } = self.load;
        let unit = if offload { "super-frames" } else { "packets" };
        let verdict = if self.is_kept() { "kept" } else { "NOT KEPT" };
        format!(
            "{floats} floats, 1 % of {unit} lost: p50 {} us, p50 without loss {} us, ratio {}; excess over \
             {PROMISED_RATIO} times the p50 without loss: {} us; packets sent per packet needed: {}; promise {verdict}",
            self.lossy_us.text(0),
            self.lossless_us.text(0),
            self.ratio.text(2),
            self.excess_us.text(0),
            self.packets.text(3),
        )
    }

    fn json(&self) -> Value {
        let Load { floats, rounds, offload } = self.load;
        json!({
            "floats": floats, "rounds": rounds, "offload": offload, "loss": f64::from(LOSS_PERMILLE) / 1e3,
            "lossless_us": self.lossless_us.json(), "lossy_us": self.lossy_us.json(), "ratio": self.ratio.json(),
            "excess_us": self.excess_us.json(), "packets_per_ideal": self.packets.json(), "kept": self.is_kept(),
        })
    }
}
