//! `testbench peers`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use iswitch_testbench::peers::table::Table;
use iswitch_testbench::peers::{Contender, Load, Network, Rate, Tools};
use iswitch_testbench::requirements::root_and;

/// The vectors of the paper's DQN, A2C, PPO and DDPG, smallest first.
const PAPER_FLOATS: [u32; 4] = [10_119, 40_327, 866_439, 1_687_206];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Floats in the vectors; by default those of the paper's four models
    #[arg(long, value_delimiter = ',', default_values_t = PAPER_FLOATS)]
    floats: Vec<u32>,
    /// Rate of each link, such as 1gbit; repeatable. Without it links are as fast as the machine
    #[arg(long)]
    rate: Vec<Rate>,
    /// Workers, each in a namespace of its own
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// Times that each contender has its turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// Only contenders whose names contain one of these words; the first that is left is compared with the others
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// A Python that has PyTorch, for Gloo
    #[arg(long, default_value = "python3", env = "ISWITCH_PEERS_PYTHON")]
    python: PathBuf,
    /// Print each table as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    if !root_and("testbench peers", &["tc"]) {
        return ExitCode::FAILURE;
    }
    let tools = Tools::find(&options.python);
    for missing in [tools.mpi.as_ref().err(), tools.python.as_ref().err()].into_iter().flatten() {
        eprintln!("{missing}");
    }
    let is_chosen = |contender: &Contender| {
        let name = contender.to_string();
        options.only.is_empty() || options.only.iter().any(|word| name.contains(word.as_str()))
    };
    let contenders: Vec<_> = Contender::all(&tools).into_iter().filter(is_chosen).collect();
    if contenders.is_empty() {
        eprintln!("--only {}: no contender has such a name", options.only.join(","));
        return ExitCode::FAILURE;
    }
    let rates: Vec<_> =
        if options.rate.is_empty() { vec![None] } else { options.rate.iter().copied().map(Some).collect() };
    for rate in rates {
        let network = Network::new(usize::from(options.workers), rate);
        for floats in &options.floats {
            let table = measure(options, &network, &tools, &contenders, Load::of(*floats, rate));
            println!("{}", if options.json { table.json().to_string() } else { table.text() });
        }
    }
    ExitCode::SUCCESS
}

/// All contenders in turns, each time in another order, so that none has the machine at its best.
fn measure(
    options: &Options,
    network: &Network,
    tools: &Tools,
    contenders: &[Contender],
    load: Load,
) -> Table {
    let mut rows: Vec<_> = contenders.iter().map(|contender| (*contender, Vec::new())).collect();
    for turn in 0..usize::from(options.turns) {
        for place in 0..rows.len() {
            let at = (place * if turn % 2 == 0 { 1 } else { rows.len() - 1 } + turn) % rows.len();
            let (contender, runs) = &mut rows[at];
            eprintln!("{} floats, turn {} of {}: {contender}", load.floats, turn + 1, options.turns);
            runs.push(contender.run(network, tools, load));
        }
    }
    Table { load, rate: network.rate, rows }
}
