//! The `testbench peers` subcommand.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use iswitch_harness::requirements::networks_and;
use iswitch_protocol::ElementTypes;
use iswitch_testbench::contest::Progress;
use iswitch_testbench::peers::{
    Axis, Contender, Links, Load, Network, Rate, Series, Table, Tools, measure, plot,
};

use crate::output::{Output, exit};

/// Lengths of the gradient vectors of the paper's DQN, A2C, PPO and DDPG, smallest first.
pub(crate) const PAPER_FLOATS: [u32; 4] = [10_119, 40_327, 866_439, 1_687_206];
/// Lengths of vectors from 4 KiB to 64 MiB.
const SWEEP_FLOATS: [u32; 8] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Lengths of the vectors, in floats
    ///
    /// The default lengths are those of the four models in the iSwitch paper.
    #[arg(long, value_delimiter = ',', default_values_t = PAPER_FLOATS)]
    floats: Vec<u32>,
    /// Measure vector sizes from 4 KiB to 64 MiB, in steps of a factor of four
    ///
    /// The sweep replaces --floats. The command prints one table of times for each number of workers.
    #[arg(long, conflicts_with = "floats")]
    sweep: bool,
    /// Numbers of workers to measure; each worker has its own network namespace
    ///
    /// With several numbers and without --sweep, the command prints one table of times for each vector length, with one
    /// column for each number.
    #[arg(long, value_delimiter = ',', default_value = "4", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: Vec<u16>,
    #[command(flatten)]
    common: Common,
}

/// Options common to `peers` and `scale`.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Rate of each link, such as 1gbit [default: unlimited]
    ///
    /// Repeatable.
    #[arg(long)]
    pub(crate) rate: Vec<Rate>,
    /// Delay added to each frame on each link, in microseconds [default: none]
    ///
    /// The delay is added in each direction. The relay that delays the frames adds some delay of its own.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    delay_us: Option<u64>,
    /// Number of interleaved measurements of each contender
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    /// Words in the names of the contenders to measure [default: all contenders]
    ///
    /// A contender is measured if its name contains one of the words. The first contender that remains is the reference
    /// for the others.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Element types of the packets: f32, bf16, f16, bf16-f32, f16-f32
    ///
    /// With bf16-f32 and f16-f32, contributions have 16-bit elements, and results have 32-bit elements. With several
    /// types, each contender is measured with each type that it supports. The parameter server and the ring of this
    /// project support only f32.
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "f32")]
    wire: Vec<ElementTypes>,
    /// Python interpreter with PyTorch, for Gloo
    #[arg(long, default_value = "python3", env = "ISWITCH_PEERS_PYTHON")]
    python: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// Tools found on this machine, and the contenders to measure.
pub(crate) type Prepared = (Tools, Vec<Contender>);

impl Common {
    /// Calls `measure` with links of each rate.
    pub(crate) fn over_links(&self, subcommand: &str, measure: impl Fn(&Prepared, Links)) -> ExitCode {
        if !networks_and(&format!("testbench {subcommand}"), &["tc", "ethtool"]) {
            return ExitCode::FAILURE;
        }
        let prepared = self.prepare();
        exit(
            subcommand,
            prepared.map(|prepared| self.links().into_iter().for_each(|links| measure(&prepared, links))),
        )
    }

    /// Finds the tools and selects the contenders.
    ///
    /// # Errors
    /// Fails if the output directory cannot be created, or if --only matches no contender. The error text is meant for
    /// the user.
    fn prepare(&self) -> Result<Prepared, String> {
        self.output.prepare()?;
        let tools = Tools::find(&self.python);
        for missing in [tools.mpi.as_ref().err(), tools.python.as_ref().err()].into_iter().flatten() {
            eprintln!("{missing}");
        }
        let is_chosen = |contender: &Contender| {
            let name = contender.to_string();
            self.only.is_empty() || self.only.iter().any(|word| name.contains(word.as_str()))
        };
        let contenders: Vec<_> = Contender::all(&tools, &self.wire).into_iter().filter(is_chosen).collect();
        if contenders.is_empty() {
            return Err(format!(
                "--only {}: no contender's name contains any of these words",
                self.only.join(",")
            ));
        }
        Ok((tools, contenders))
    }

    fn links(&self) -> Vec<Links> {
        let delay = self.delay_us.map(Duration::from_micros);
        let rates =
            if self.rate.is_empty() { vec![None] } else { self.rate.iter().copied().map(Some).collect() };
        rates.into_iter().map(|rate| Links { rate, delay }).collect()
    }

    /// Measures all contenders on one network with one vector.
    pub(crate) fn measure(&self, network: &Network, prepared: &Prepared, floats: u32) -> Table {
        let (tools, contenders) = prepared;
        let workers = network.worker_count();
        let load = Load::of(floats, network.links().rate, workers);
        let table = measure(network, tools, contenders, load, usize::from(self.turns), &Progress::new());
        if self.output.json {
            println!("{}", table.json());
        }
        table
    }

    /// Prints a text unless JSON is requested, and draws a figure.
    pub(crate) fn show(&self, text: &str, slug: &str, figure: &str) {
        if !self.output.json {
            println!("{text}");
        }
        self.output.draw_or_warn(slug, figure);
    }

    pub(crate) fn show_series(&self, prefix: &str, axis: Axis, tables: Vec<Table>) {
        let series = Series { axis, tables };
        self.show(&series.text(), &format!("{prefix}-{}", series.slug()), &plot::lines(&series));
    }
}

pub(crate) fn run(options: &Options) -> ExitCode {
    options.common.over_links("peers", |prepared, links| measure_all(options, prepared, links))
}

fn measure_all(options: &Options, prepared: &Prepared, links: Links) {
    let common = &options.common;
    let floats: &[u32] = if options.sweep { &SWEEP_FLOATS } else { &options.floats };
    // For each vector, the tables of all numbers of workers.
    let mut by_floats: Vec<Vec<Table>> = vec![Vec::new(); floats.len()];
    for workers in &options.workers {
        let network = Network::star(usize::from(*workers), links);
        if links.delay.is_some() {
            eprintln!("round trip between a worker and the switch: {} us", network.round_trip().as_micros());
        }
        for (tables, floats) in by_floats.iter_mut().zip(floats) {
            let table = common.measure(&network, prepared, *floats);
            if !options.sweep && options.workers.len() == 1 {
                common.show(&table.text(), &format!("peers-{}", table.slug()), &plot::bars(&table));
            }
            tables.push(table);
        }
    }
    if options.sweep {
        for at in 0..options.workers.len() {
            let tables = by_floats.iter().map(|tables| tables[at].clone()).collect();
            common.show_series("peers", Axis::Bytes, tables);
        }
    } else if options.workers.len() > 1 {
        by_floats.into_iter().for_each(|tables| common.show_series("peers", Axis::Workers, tables));
    }
}
