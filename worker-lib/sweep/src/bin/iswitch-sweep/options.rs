//! Options of a sweep, and the options that it passes to its runs.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::parser::ValueSource;
use clap::{Arg, Args, CommandFactory as _};
use iswitch_cli::algorithm::TrainingCommand;
use iswitch_cli::hyper::OwnParameters;
use iswitch_cli::train::{DEFAULT_WORKERS, TrainArgs};
use iswitch_learn::algorithms::trainer::Algorithm;
use iswitch_learn::env;

use crate::Cli;
use crate::grid::{Axis, Settings, combinations};
use crate::plan::{Configuration, Plan};

/// Training options that do not apply to a sweep, because the sweep sets them for each run or starts the processes
/// itself.
const REFUSED: [&str; 9] =
    ["auto_resume", "members", "rank", "resume", "seed", "serve", "server", "supervised", "switch"];
/// Options that concern the sweep itself and are not passed to its runs.
const OWN: [&str; 8] = ["first_seed", "force", "grid", "jobs", "json", "out", "quiet", "seeds"];

/// Options that `iswitch sweep train` adds to those of `iswitch train`.
#[derive(Args)]
#[command(next_help_heading = "Sweep")]
pub(crate) struct Sweep {
    /// Number of seeds with which each configuration is trained
    #[arg(long, value_name = "N", default_value = "10")]
    seeds: NonZero<u64>,
    /// First seed; the others are the numbers that follow it
    #[arg(long, value_name = "S", default_value_t = 1)]
    first_seed: u64,
    /// Values of a hyper-parameter, such as gamma=0.98,0.99
    ///
    /// `iswitch train ALGORITHM --list-parameters` shows the names. If the option is repeated, the sweep trains with
    /// each combination of the values.
    #[arg(long, value_name = "NAME=VALUE,...")]
    grid: Vec<Axis>,
    /// Number of concurrent runs [default: cores / (workers * threads per worker)]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
}

impl TrainingCommand for Sweep {
    fn adapt(option: Arg) -> Arg {
        match option.get_id().as_str() {
            id if REFUSED.contains(&id) => option.hide(true),
            "out" => option.help("Directory of the sweep, with a directory for each run").long_help(
                "Directory of the sweep, with a directory for each run\n\nThe default is a directory under `runs` \
                 named after the algorithm and the environment. The results are report.md, results.csv, results.json \
                 and curves.svg.",
            ),
            "force" => option.help("Discard the existing runs in the directory, and train again"),
            "json" => option.help("Print the results as one JSON object on standard output"),
            _ => option,
        }
    }

    fn run<A: Algorithm, H: OwnParameters>(&self, train: &TrainArgs<H>) -> anyhow::Result<ExitCode> {
        let plan = self.plan::<A, H>(train)?;
        if train.lists_parameters(&train.job::<A>()?, DEFAULT_WORKERS)? {
            return Ok(ExitCode::SUCCESS);
        }
        plan.execute(train.run.quiet, train.run.json)
    }
}

impl Sweep {
    /// Checks all configurations before any run starts, and returns the plan of the sweep.
    fn plan<A: Algorithm, H: OwnParameters>(&self, train: &TrainArgs<H>) -> anyhow::Result<Plan> {
        let given = given();
        if let Some(option) = given.iter().find(|option| REFUSED.contains(&option.id.as_str())) {
            bail!(
                "--{} does not apply to a sweep; see `iswitch sweep train {} --help`",
                option.name,
                A::NAME
            );
        }
        if train.group.is_configured() {
            bail!("ISWITCH_SWITCH is set, but each run of a sweep starts its own switch; unset the variable");
        }
        for Axis { name, .. } in &self.grid {
            let conflict = given.iter().find(|option| option.sets(name));
            if let Some(conflict) = conflict {
                bail!("--grid {name}: --{} sets the same hyper-parameter", conflict.name);
            }
        }
        let workers = train.run.role(&train.group, DEFAULT_WORKERS)?.world().size;
        let job = train.job::<A>()?;
        let configurations = combinations(&self.grid)
            .into_iter()
            .map(|settings| configuration::<A, H>(train, settings))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let solved_return = env::make(&job.env)?.spec().solved_return;
        let passed_on = given.iter().filter(|option| !OWN.contains(&option.id.as_str()));
        let last = self.first_seed.checked_add(self.seeds.get() - 1);
        let last = last.with_context(|| {
            format!(
                "--first-seed {}: with {} seeds, the last seed exceeds 2^64 - 1",
                self.first_seed, self.seeds
            )
        })?;
        let out = train.run.out.clone().unwrap_or_else(|| {
            PathBuf::from(format!("runs/sweep-{}-{}", A::NAME, job.env.replace(['/', ':'], "-")))
        });
        Ok(Plan {
            algorithm: A::NAME,
            arguments: passed_on.flat_map(GivenOption::arguments).collect(),
            jobs: self.jobs.map_or_else(|| default_jobs(workers * train.env_threads()), NonZero::get),
            seeds: self.first_seed..=last,
            discards: train.run.force,
            env: job.env,
            out,
            workers,
            solved_return,
            configurations,
        })
    }
}

/// Checks a configuration.
fn configuration<A: Algorithm, H: OwnParameters>(
    train: &TrainArgs<H>,
    settings: Settings,
) -> anyhow::Result<Configuration> {
    let further: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut config = train.job_with::<A>(&further)?.config;
    let common = config.common();
    if settings.iter().any(|(name, _)| name == "seed") {
        bail!("--grid cannot set seed; use --seeds and --first-seed");
    }
    Ok(Configuration { total_steps: *common.total_steps, settings })
}

/// Returns the number of runs, at least 1, that can execute concurrently if each run has `threads` threads and each
/// thread has a separate core.
fn default_jobs(threads: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    (cores / threads).max(1)
}

/// Option that was given on the command line.
struct GivenOption {
    id: String,
    name: String,
    /// Values; `None` if the option takes no values.
    values: Option<Vec<String>>,
}

impl GivenOption {
    /// Whether the option sets the hyper-parameter `name`, either with `--set` or with the option named after it.
    fn sets(&self, name: &str) -> bool {
        let is_setting = |value: &String| value.split('=').next() == Some(name);
        self.id == name || (self.name == "set" && self.values.iter().flatten().any(is_setting))
    }

    fn arguments(&self) -> Vec<String> {
        let Self { name, values, .. } = self;
        match values {
            None => vec![format!("--{name}")],
            Some(values) => values.iter().map(|value| format!("--{name}={value}")).collect(),
        }
    }
}

/// Returns the options that were given on the command line of this process, which must already have been parsed
/// successfully.
fn given() -> Vec<GivenOption> {
    let mut command = Cli::command();
    let mut matches = command.get_matches_mut();
    while let Some((name, inner)) = matches.remove_subcommand() {
        command = command.find_subcommand(&name).expect("the subcommand has been parsed").clone();
        matches = inner;
    }
    let is_given =
        |option: &&Arg| matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
    let options = command.get_arguments().filter(is_given);
    options
        .map(|option| {
            let id = option.get_id().to_string();
            let values = matches.get_raw(&id).into_iter().flatten();
            let values = values.map(|value| value.to_string_lossy().into_owned()).collect();
            GivenOption {
                name: option.get_long().unwrap_or(&id).to_owned(),
                values: option.get_action().takes_values().then_some(values),
                id,
            }
        })
        .collect()
}
