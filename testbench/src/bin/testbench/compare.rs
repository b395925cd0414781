//! The `testbench compare` subcommand: compares this protocol with simpler ones on the same networks.

use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use iswitch_simulation::baselines::{NETWORKS, Outcome, Protocol, SEGMENTS, WORKERS, run};
use iswitch_testbench::contest::Markdown;
use strum::VariantArray as _;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of runs of each protocol on each network
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Number of rounds of each run
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn compare(options: &Options) -> ExitCode {
    let outcomes = run_all(options);
    if options.json {
        let rows: Vec<_> = NETWORKS
            .iter()
            .zip(&outcomes)
            .flat_map(|((network, _), outcomes)| {
                Protocol::VARIANTS.iter().zip(outcomes).map(move |(protocol, outcome)| {
                    serde_json::json!({
                        "network": network, "protocol": protocol, "wrong_percent": outcome.wrong_percent(),
                        "overhead": outcome.overhead(), "outcome": outcome,
                    })
                })
            })
            .collect();
        println!("{}", serde_json::json!({ "seeds": options.seeds, "rounds": options.rounds, "rows": rows }));
    } else {
        print_table(options, &outcomes);
    }
    ExitCode::SUCCESS
}

/// Adds up the outcomes over all seeds, for each network and protocol.
fn run_all(options: &Options) -> Vec<[Outcome; 3]> {
    let tasks = NETWORKS.len() * Protocol::VARIANTS.len() * options.seeds as usize;
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![[Outcome::default(); 3]; NETWORKS.len()]);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if task >= tasks {
                        break;
                    }
                    let (seed, place) = (task / (NETWORKS.len() * 3), task % (NETWORKS.len() * 3));
                    let (network, protocol) = (place / 3, place % 3);
                    let link = NETWORKS[network].1;
                    let outcome = run(Protocol::VARIANTS[protocol], link, options.rounds, seed as u64);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner)[network][protocol].add(&outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn print_table(options: &Options, outcomes: &[[Outcome; 3]]) {
    println!(
        "{WORKERS} workers, {SEGMENTS} segments, {} rounds, {} seeds; each cell: wrong results in percent, \
         runs that finished, packets sent per packet needed\n",
        options.rounds, options.seeds
    );
    let mut rows =
        Markdown::new(["network", "bare counter", "one-bit generation", "rounds (iSwitch for Linux)"]);
    for ((network, _), outcomes) in NETWORKS.iter().zip(outcomes) {
        let cell = |outcome: &Outcome| {
            let Outcome { finished, runs, .. } = outcome;
            format!("{:.3} %, {finished}/{runs}, {:.3}", outcome.wrong_percent(), outcome.overhead())
        };
        rows.row([(*network).to_owned()].into_iter().chain(outcomes.each_ref().map(cell)));
    }
    print!("{}", rows.text());
}
