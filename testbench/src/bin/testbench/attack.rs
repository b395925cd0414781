//! The `testbench attack` subcommand.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use iswitch_harness::binaries;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::attack::{ALL, Attack, Effort, Outcome};
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Duration of the aggregation during each attack, in seconds
    #[arg(long, default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,
    /// Number of packets that each flooding attack sends
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    packets: u32,
    /// Seed of the random number generator
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Attacks to run [default: all]
    #[arg(long, value_delimiter = ',', value_parser = attack)]
    only: Vec<Attack>,
    /// List the attacks without running them
    #[arg(long)]
    list: bool,
    /// Print the outcomes as one line of JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.5..=8.0).contains(seconds));
    seconds.ok_or_else(|| "expected 0.5 to 8".to_owned())
}

fn attack(text: &str) -> Result<Attack, String> {
    let found = ALL.iter().find(|attack| attack.name == text);
    let names: Vec<_> = ALL.iter().map(|attack| attack.name).collect();
    found.copied().ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let attacks = if options.only.is_empty() { ALL } else { &options.only };
    if options.list {
        list(attacks, options.json);
        return ExitCode::SUCCESS;
    }
    if !networks_and("testbench attack", &["ethtool", "ping"]) {
        return ExitCode::FAILURE;
    }
    let effort = Effort {
        duration: Duration::from_secs_f64(options.seconds),
        packets: options.packets as usize,
        seed: options.seed,
    };
    // Builds the daemon now, so that the build does not count as part of an attack.
    binaries::iswitchd();
    let outcomes: Vec<_> = attacks
        .iter()
        .map(|attack| {
            let outcome = attack.run(&effort);
            eprintln!("{}", line(&outcome));
            outcome
        })
        .collect();
    let failed = outcomes.iter().filter(|outcome| outcome.verdict.is_err()).count();
    if options.json {
        let rows: Vec<_> = outcomes.iter().map(row).collect();
        println!("{}", json!({ "attacks": rows, "failed": failed }));
    } else {
        println!("{} attacks; {failed} of them broke a promise", outcomes.len());
    }
    ExitCode::from(u8::from(failed > 0))
}

fn list(attacks: &[Attack], json: bool) {
    if json {
        let rows: Vec<_> = attacks.iter().map(described).collect();
        println!("{}", json!({ "attacks": rows }));
        return;
    }
    for Attack { name, what, promise, .. } in attacks {
        println!("{name}\n    {what}\n    must hold: {promise}");
    }
}

fn described(attack: &Attack) -> Value {
    json!({ "name": attack.name, "what": attack.what, "promise": attack.promise })
}

fn line(outcome: &Outcome) -> String {
    let (verdict, text) = match &outcome.verdict {
        Ok(text) => ("holds", text),
        Err(text) => ("BROKEN", text),
    };
    format!("{:<18} {verdict:<7} {:>5.1} s  {text}", outcome.attack.name, outcome.elapsed.as_secs_f64())
}

fn row(outcome: &Outcome) -> Value {
    let mut row = described(&outcome.attack);
    let (Ok(text) | Err(text)) = &outcome.verdict;
    row["holds"] = outcome.verdict.is_ok().into();
    row["outcome"] = text.as_str().into();
    row["seconds"] = outcome.elapsed.as_secs_f64().into();
    row
}
