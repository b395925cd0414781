//! The `testbench study` subcommand.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use iswitch::ElementTypes;
use iswitch_harness::requirements::networks_and;
use iswitch_testbench::contest::Progress;
use iswitch_testbench::peers::racks::racks_of;
use iswitch_testbench::peers::{Links, Network, Rate};
use iswitch_testbench::study::asynchronous::{self, AsyncReplay};
use iswitch_testbench::study::convergence::measure;
use iswitch_testbench::study::curves;
use iswitch_testbench::study::elements;
use iswitch_testbench::study::paper::{self, MODELS, Model};
use iswitch_testbench::study::replay::{CONTENDERS, Origin, Replay, Scene, scaling_figure, scaling_text};
use iswitch_testbench::study::split::{self, Split};
use iswitch_testbench::study::tasks::{HOPPER, Method, TASKS, Task};

use crate::output::{Output, exit};

/// Rate of the paper's links, in bits per second. On slower links, the computation is stretched in proportion.
const PAPER_BITS_PER_S: f64 = 1e10;
/// Time for which the computation of each algorithm of this project is measured before the replay, in seconds.
const OWN_SECONDS: f64 = 2.0;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Measure the time of an iteration with the switch, a server and a ring
    ///
    /// In each iteration, a worker first sleeps for the computation time instead of computing a gradient. It then sums
    /// a vector with the other workers through the switch, a parameter server or a ring. Needs root.
    Replay(ReplayOptions),
    /// Measure the time of each phase of an iteration in this project's algorithms
    Split(SplitOptions),
    /// Train with each method, and compare the learning curves
    ///
    /// For asynchronous methods, the command counts the updates until the target return is reached. All synchronous
    /// methods must have the same curve.
    Convergence(ConvergenceOptions),
    /// Train with 16-bit and 32-bit elements, and compare the returns
    Elements(ElementsOptions),
    /// Run the measurement of `replay` over racks of workers
    ///
    /// Each rack has a child switch below one parent switch. Needs root.
    Racks(RackOptions),
    /// Run split, replay, racks and convergence, one after the other
    ///
    /// The parts run with their default options, with two exceptions: replay and racks run both with and without
    /// --async, and racks replays only PPO and DDPG. Needs root.
    All(Repeated),
}

#[derive(Clone, Debug, Args)]
struct Repeated {
    /// Number of interleaved measurements of each contender
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,
    #[command(flatten)]
    shown: Output,
}

/// Origin of the computation that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compute {
    /// Computation times of the paper, derived from its text
    Paper,
    /// Computation times of this project's algorithms, measured before the replay
    Own,
}

#[derive(Debug, Args)]
struct Replayed {
    /// Models of the paper whose iterations are replayed
    #[arg(long, value_delimiter = ',', default_values = ["ppo", "ddpg", "a2c", "dqn"], value_parser = model)]
    models: Vec<Model>,
    /// Link rates to measure; all links of a network have the same rate
    ///
    /// On links slower than 10gbit, computation is stretched in proportion: at 1gbit, it takes ten times as long.
    #[arg(long, value_delimiter = ',', default_values = ["1gbit", "10gbit"])]
    rate: Vec<Rate>,
    /// Origins of the replayed computation times
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["paper", "own"])]
    compute: Vec<Compute>,
    /// Approximate duration of a turn of the slowest contender, in seconds
    #[arg(long, default_value_t = 5.0, value_parser = positive)]
    seconds: f64,
    #[command(flatten)]
    output: Repeated,
}

#[derive(Debug, Args)]
struct ReplayOptions {
    /// Number of workers, each in its own network namespace
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    workers: u16,
    /// Measure asynchronous training, in which workers do not wait for each other
    ///
    /// The switch is compared with an asynchronous parameter server.
    #[arg(long = "async")]
    is_async: bool,
    #[command(flatten)]
    replayed: Replayed,
}

#[derive(Debug, Args)]
struct SplitOptions {
    /// Numbers of workers among which a batch is divided
    ///
    /// Only one of the workers is measured.
    #[arg(
        long, value_delimiter = ',', default_values_t = [4, 1],
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    workers: Vec<u16>,
    /// Duration of the measurement of each algorithm in each turn, in seconds
    #[arg(long, default_value_t = 5.0, value_parser = positive)]
    seconds: f64,
    #[command(flatten)]
    output: Repeated,
}

#[derive(Debug, Args)]
struct ConvergenceOptions {
    /// Algorithms to train
    #[arg(long, value_delimiter = ',', default_values = ["a2c", "dqn", "ppo", "ddpg"], value_parser = task)]
    algorithms: Vec<Task>,
    /// Number of workers in each run
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    workers: u16,
    /// Number of seeds per method; the first seed is 1
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Number of environment steps of each run [default: that of `iswitch train`]
    #[arg(long)]
    steps: Option<u64>,
    /// Kind of methods to train [default: both]
    #[arg(long, value_enum)]
    only: Option<Kind>,
    #[command(flatten)]
    shown: Output,
}

#[derive(Debug, Args)]
struct ElementsOptions {
    /// Algorithms to train
    #[arg(long, value_delimiter = ',', default_values = ["a2c", "dqn", "ppo", "ddpg"], value_parser = task)]
    algorithms: Vec<Task>,
    /// Element types to train with; all others are compared with the first
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_values = ["f32", "bf16", "f16"])]
    wire: Vec<ElementTypes>,
    /// Number of workers in each run
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    workers: u16,
    /// Number of seeds per element type
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// First seed; the others are the numbers that follow it
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    #[command(flatten)]
    shown: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Methods in which workers wait for each other
    Sync,
    /// Methods in which workers do not wait for each other
    Async,
}

#[derive(Debug, Args)]
struct RackOptions {
    /// Numbers of workers, in racks of three
    ///
    /// Four workers form two racks of two. Otherwise, if the number is not a multiple of three, the last rack is
    /// smaller.
    #[arg(
        long, value_delimiter = ',', default_values_t = [4, 6, 9, 12],
        value_parser = clap::value_parser!(u16).range(2..=24)
    )]
    workers: Vec<u16>,
    /// Measure asynchronous training, in which workers do not wait for each other
    ///
    /// The switches are compared with an asynchronous parameter server at the root.
    #[arg(long = "async")]
    is_async: bool,
    #[command(flatten)]
    replayed: Replayed,
}

fn model(text: &str) -> Result<Model, String> {
    let known = MODELS.map(|model| model.name.to_lowercase()).join(", ");
    Model::named(text).ok_or_else(|| format!("no such model; expected one of {known}"))
}

fn task(text: &str) -> Result<Task, String> {
    let known = TASKS.map(|task| task.algorithm).join(", ");
    let found = TASKS.into_iter().find(|task| task.algorithm == text);
    found.ok_or_else(|| format!("no such algorithm; expected one of {known}"))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "expected a number above 0".to_owned())
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let result = match &options.part {
        Part::Replay(options) => replay(options),
        Part::Split(options) => split_iterations(options),
        Part::Convergence(options) => convergence(options),
        Part::Elements(options) => compare_elements(options),
        Part::Racks(options) => racks(options),
        Part::All(output) => all(output),
    };
    exit("study", result)
}

impl Replayed {
    /// Returns the models and their computation times to replay at one link rate.
    fn scenes(&self, own: &[Split], rate: Rate) -> Vec<Scene> {
        let stretch = (PAPER_BITS_PER_S / rate.bits_per_s).round().max(1.0) as u32;
        let of_model = |compute: Compute, model: Model| match compute {
            Compute::Paper => {
                let compute = Duration::from_secs_f64(model.iteration().compute_ms * 1e-3);
                Some(Scene { model, origin: Origin::Paper, compute, stretch })
            }
            Compute::Own => {
                let split = own.iter().find(|split| split.model == model)?;
                Some(Scene { model, origin: Origin::Own, compute: split.compute(), stretch })
            }
        };
        let compute = self.compute.iter();
        compute
            .flat_map(|compute| self.models.iter().filter_map(|model| of_model(*compute, *model)))
            .collect()
    }

    /// Measures this project's own computation, if it is requested.
    fn measure_own(&self, workers: usize) -> Result<Vec<Split>, String> {
        if !self.compute.contains(&Compute::Own) {
            return Ok(Vec::new());
        }
        let splits = split::measure(workers, 1, OWN_SECONDS, &Progress::new());
        splits.map_err(|error| error.to_string())
    }

    fn begin(&self, what: &str) -> Result<(), String> {
        if !networks_and(what, &["tc", "ethtool"]) {
            return Err("this machine does not meet the requirements above".to_owned());
        }
        self.output.shown.prepare()?;
        if self.compute.contains(&Compute::Paper) && !self.output.shown.json {
            println!("{}", paper::text());
        }
        Ok(())
    }
}

fn replay(options: &ReplayOptions) -> Result<(), String> {
    let replayed = &options.replayed;
    replayed.begin("testbench study replay")?;
    let own = replayed.measure_own(usize::from(options.workers))?;
    for rate in &replayed.rate {
        let network = Network::star(usize::from(options.workers), Links { rate: Some(*rate), delay: None });
        for scene in replayed.scenes(&own, *rate) {
            if options.is_async {
                let replay = replay_async(replayed, scene, &network);
                replayed.output.shown.draw_or_warn(&replay.slug(), &replay.figure());
            } else {
                let replay = replay_sync(replayed, scene, &network);
                replayed.output.shown.draw_or_warn(&replay.slug(), &replay.figure());
            }
        }
    }
    Ok(())
}

fn replay_sync(replayed: &Replayed, scene: Scene, network: &Network) -> Replay {
    let output = &replayed.output;
    let turns = usize::from(output.turns);
    let replay = scene.measure(network, &CONTENDERS, turns, replayed.seconds, &Progress::new());
    output.shown.show(&replay.text(), &replay.json());
    replay
}

fn replay_async(replayed: &Replayed, scene: Scene, network: &Network) -> AsyncReplay {
    let output = &replayed.output;
    let turns = usize::from(output.turns);
    let replay = asynchronous::measure(scene, network, turns, replayed.seconds, &Progress::new());
    output.shown.show(&replay.text(), &replay.json());
    replay
}

fn compare_elements(options: &ElementsOptions) -> Result<(), String> {
    options.shown.prepare()?;
    let progress = Progress::new();
    let ElementsOptions { workers, seeds, first_seed, .. } = *options;
    for task in &options.algorithms {
        // This comparison uses `HOPPER` for PPO, because PPO reaches the maximum return on CartPole with any element
        // type.
        let task = if task.algorithm == HOPPER.algorithm { HOPPER } else { *task };
        let comparison =
            elements::measure(task, &options.wire, workers.into(), (first_seed, seeds), &progress);
        options.shown.show(&comparison.text(), &comparison.json());
    }
    Ok(())
}

fn racks(options: &RackOptions) -> Result<(), String> {
    let replayed = &options.replayed;
    replayed.begin("testbench study racks")?;
    let own = replayed.measure_own(4)?;
    let output = &replayed.output;
    for rate in &replayed.rate {
        let scenes = replayed.scenes(&own, *rate);
        let (mut by_scene, mut asynchronous) =
            (vec![Vec::new(); scenes.len()], vec![Vec::new(); scenes.len()]);
        for workers in &options.workers {
            let links = Links { rate: Some(*rate), delay: None };
            let network = Network::racks(&racks_of(usize::from(*workers)), links);
            for (at, scene) in scenes.iter().enumerate() {
                if options.is_async {
                    asynchronous[at].push(replay_async(replayed, *scene, &network));
                } else {
                    by_scene[at].push(replay_sync(replayed, *scene, &network));
                }
            }
        }
        by_scene.iter().filter(|replays| !replays.is_empty()).for_each(|replays| show_racks(output, replays));
        let shown = asynchronous.iter().filter(|replays| !replays.is_empty() && !output.shown.json);
        shown.for_each(|replays| println!("{}", asynchronous::scaling_text(replays)));
    }
    Ok(())
}

fn show_racks(output: &Repeated, replays: &[Replay]) {
    if !output.shown.json {
        println!("{}", scaling_text(replays));
    }
    output.shown.draw_or_warn(&format!("{}-racks", replays[0].slug()), &scaling_figure(replays));
}

fn split_iterations(options: &SplitOptions) -> Result<(), String> {
    options.output.shown.prepare()?;
    for workers in &options.workers {
        let turns = usize::from(options.output.turns);
        let splits = split::measure(usize::from(*workers), turns, options.seconds, &Progress::new())
            .map_err(|error| error.to_string())?;
        if options.output.shown.json {
            splits.iter().for_each(|split| println!("{}", split.json()));
        } else {
            println!("{}", split::text(&splits));
        }
    }
    Ok(())
}

fn convergence(options: &ConvergenceOptions) -> Result<(), String> {
    options.shown.prepare()?;
    let progress = Progress::new();
    let kinds: [(Kind, &[Method]); 2] =
        [(Kind::Async, &Method::ASYNCHRONOUS), (Kind::Sync, &Method::SYNCHRONOUS)];
    for task in &options.algorithms {
        for (kind, methods) in kinds {
            if options.only.is_none_or(|only| only == kind) {
                let workers = usize::from(options.workers);
                let ConvergenceOptions { seeds, steps, .. } = *options;
                let comparison = measure(*task, methods, workers, (1, seeds), steps, &progress);
                options.shown.show(&comparison.text(), &comparison.json());
                let kind = if kind == Kind::Async { "-async" } else { "" };
                let slug = format!("study-learning-{}{kind}", task.algorithm);
                options.shown.draw_or_warn(&slug, &curves::draw(&comparison));
            }
        }
    }
    Ok(())
}

fn all(output: &Repeated) -> Result<(), String> {
    let replayed = |models: &[Model]| Replayed {
        models: models.to_vec(),
        rate: vec![Rate { bits_per_s: 1e9 }, Rate { bits_per_s: PAPER_BITS_PER_S }],
        compute: vec![Compute::Paper, Compute::Own],
        seconds: 5.0,
        output: output.clone(),
    };
    split_iterations(&SplitOptions { workers: vec![4, 1], seconds: 5.0, output: output.clone() })?;
    for is_async in [false, true] {
        replay(&ReplayOptions { workers: 4, is_async, replayed: replayed(&MODELS) })?;
    }
    for is_async in [false, true] {
        racks(&RackOptions { workers: vec![4, 6, 9, 12], is_async, replayed: replayed(&MODELS[..2]) })?;
    }
    convergence(&ConvergenceOptions {
        algorithms: TASKS.to_vec(),
        workers: 4,
        seeds: 3,
        steps: None,
        only: None,
        shown: output.shown.clone(),
    })
}
