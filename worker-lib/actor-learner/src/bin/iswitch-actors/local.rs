//! `iswitch actor-learner`: starts and supervises the learners, actors, cells and shards of a run on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use iswitch_learn::algorithms::remote::Demand;
use iswitch_learn::algorithms::trainer::{Algorithm, World};
use iswitch_learn::env;

use super::access::{model_token, replay_token};
use super::learner::DEFAULT_LEARNERS;
use super::supervise::{Kind, Supervised, end_all};
use iswitch_cli::group::free_addresses;
use iswitch_cli::hyper::OwnParameters;
use iswitch_cli::signals;
use iswitch_cli::train::{Job, TrainArgs};

/// Interval at which the processes are polled.
const POLL: Duration = Duration::from_millis(20);
/// Grace period of a learner that has been asked to stop. The learner may first have to complete a long update; it then
/// saves its state.
const LEARNER_GRACE: Duration = Duration::from_secs(60);

/// Arguments of `iswitch actor-learner ALGORITHM`.
#[derive(Args)]
pub(crate) struct LocalArgs<H: Args> {
    #[command(flatten)]
    train: TrainArgs<H>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Arguments for the actors, cells and replay shards that the command starts in addition to the learners.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Actors and replay (--workers sets the number of learners, default 1)")]
struct SiteArgs {
    /// Total number of actors
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    actors: u32,
    /// Maximum number of actors per process
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    actors_per_process: u32,
    /// Number of environments per actor
    ///
    /// An actor steps all of its environments together.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    environments_per_actor: u32,
    /// Number of cells, which cache policies between the learner and the actors
    ///
    /// The actor processes are divided among the cells. With 0, the actors read policies directly from the learner.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=256))]
    cells: u32,
    /// Number of replay shards, each in its own process
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    shards: u32,
    /// Durability of acknowledged items: none, write or sync
    ///
    /// With none, all items are lost when a shard exits. With write, they survive a shard exiting. With sync, they also
    /// survive a crash of the machine. With write and sync, the shards store their items in the run directory.
    #[arg(long, value_name = "WHAT", default_value = "none", value_parser = ["none", "write", "sync"])]
    replay_durability: String,
    /// Maximum memory of each shard, such as 4GiB
    ///
    /// Default: 1GiB.
    #[arg(long, value_name = "SIZE")]
    replay_memory_max: Option<String>,
    /// File with the bearer token that every request to a shard must carry
    ///
    /// The file contains one line.
    #[arg(long, value_name = "FILE")]
    replay_token_file: Option<PathBuf>,
    /// File with the bearer token that readers of policies must send
    ///
    /// The file contains one line. The learner and the cells require this token.
    #[arg(long, value_name = "FILE")]
    model_token_file: Option<PathBuf>,
}

/// Options of this command that the learner command does not accept.
const OWN_OPTIONS: [&str; 9] = [
    "--actors",
    "--actors-per-process",
    "--environments-per-actor",
    "--cells",
    "--shards",
    "--replay-durability",
    "--replay-memory-max",
    "--replay-token-file",
    "--model-token-file",
];

/// Addresses of the servers in a run.
struct Addresses {
    learner: String,
    cells: Vec<String>,
    shards: Vec<String>,
}

/// Starts all processes, and waits until the run ends.
pub(super) fn run<A: Algorithm, H: OwnParameters>(args: &mut LocalArgs<H>) -> anyhow::Result<ExitCode> {
    args.train.read_config::<A>()?;
    args.train.refuse_env_threads()?;
    let job = args.train.job::<A>()?;
    if args.train.lists_parameters(&job, DEFAULT_LEARNERS)? {
        return Ok(ExitCode::SUCCESS);
    }
    if args.train.group.is_configured() {
        bail!(
            "--switch, --server and --members are not supported here, because all learners are child processes: pass \
             these options to `iswitch learner`"
        );
    }
    args.site.check_tokens()?;
    args.train.run.prepare(&job.out, World::ALONE)?;
    let stop: Arc<AtomicBool> = Arc::default();
    signals::stop_on_signal(&stop)?;
    let addresses = Addresses::choose(&args.site)?;
    let environments = args.environments(&job)?;
    let mut arguments = learner_arguments(environments, &addresses, &job.out);
    arguments.extend(args.site.tokens("--replay-token-file", "--model-read-token-file"));
    let mut learner = start_learner(arguments, args.train.run.goes_on())?;
    let mut others = args.site.start(&addresses, &job.out)?;
    let ended = look_after(&mut learner, &mut others, &stop);
    learner.ask_to_end();
    if !learner.wait(LEARNER_GRACE) {
        eprintln!("iswitch: the learner did not exit within {LEARNER_GRACE:?} and was killed");
    }
    end_all(&mut others);
    ended.map(|()| ExitCode::SUCCESS)
}

/// Supervises the processes until the learner is done or `stop` is set.
fn look_after(learner: &mut Supervised, others: &mut [Supervised], stop: &AtomicBool) -> anyhow::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        if learner.look_after()? {
            return Ok(());
        }
        for process in &mut *others {
            process.look_after()?;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

impl Addresses {
    fn choose(site: &SiteArgs) -> anyhow::Result<Self> {
        let (cells, shards) = (site.cells as usize, site.shards as usize);
        let mut free = free_addresses(1 + cells + shards)?.into_iter().map(|address| address.to_string());
        let learner = free.next().expect("at least one free address was requested");
        let cells = free.by_ref().take(cells).collect();
        Ok(Self { learner, cells, shards: free.collect() })
    }

    fn shard_urls(&self) -> String {
        self.shards.iter().map(|address| format!("http://{address}")).collect::<Vec<_>>().join(",")
    }

    /// Returns the addresses from which an actor process reads policies: first its own cell, then the other cells, then
    /// the learner.
    fn models(&self, process: usize) -> String {
        let mut order = self.cells.clone();
        if !order.is_empty() {
            order.rotate_left(process % self.cells.len());
        }
        order.push(self.learner.clone());
        order.join(",")
    }
}

impl<H: OwnParameters> LocalArgs<H> {
    /// Returns the number of rollouts per update that this command adds to the learner's arguments, or `None` to use
    /// the preset's number. The command adds a number if the algorithm uses rollouts, the user has not given a number,
    /// and the preset has fewer rollouts per update than the run has environments. Each update then includes at least
    /// one rollout of each environment, so that no rollout becomes stale while it waits for the others.
    fn environments<A: Algorithm>(&self, job: &Job<A>) -> anyhow::Result<Option<u32>> {
        let learners = u32::from(self.train.run.workers_or(DEFAULT_LEARNERS));
        let world = World { rank: 0, size: learners as usize };
        // Report an invalid environment id or a missing library before any process starts.
        let demand = job.config.clone().remote_learner(world, env::make(&job.env)?.spec())?.demand;
        let Demand::Rollouts { per_update, .. } = demand else { return Ok(None) };
        let all = (self.site.actors * self.site.environments_per_actor).next_multiple_of(learners);
        let may_choose = !self.train.run.resume && !self.train.hyper.environments_given();
        Ok((may_choose && per_update < all as usize).then_some(all))
    }
}

/// Returns the arguments of a learner: the arguments of this process, except the options that only this command
/// accepts.
fn learner_arguments(environments: Option<u32>, addresses: &Addresses, out: &Path) -> Vec<OsString> {
    let mut arguments = vec!["learner".into()];
    // Skip the name of the program and the name of the subcommand.
    let mut given = std::env::args_os().skip(2);
    while let Some(argument) = given.next() {
        match argument.to_str().and_then(own_option) {
            Some(OwnOption::WithValue) => {}
            Some(OwnOption::Alone) => _ = given.next(),
            None => arguments.push(argument),
        }
    }
    let more = ["--replay", &addresses.shard_urls(), "--publish", &addresses.learner];
    arguments.extend(more.map(OsString::from));
    if let Some(environments) = environments {
        arguments.extend(["--environments".into(), environments.to_string().into()]);
    }
    arguments.extend(["--out".into(), out.into()]);
    arguments
}

enum OwnOption {
    /// The option and its value are one argument, as in `--cells=2`.
    WithValue,
    /// The value is the next argument, as in `--cells 2`.
    Alone,
}

fn own_option(argument: &str) -> Option<OwnOption> {
    let (name, value) =
        argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
    let kind = if value.is_some() { OwnOption::WithValue } else { OwnOption::Alone };
    OWN_OPTIONS.contains(&name).then_some(kind)
}

/// Starts the learners. If there is only one, starts its process; otherwise, starts the parent process of all learners.
fn start_learner(arguments: Vec<OsString>, goes_on: bool) -> anyhow::Result<Supervised> {
    Supervised::start("the learner".to_owned(), Kind::Main, move |starts| {
        let again = (starts > 0 && !goes_on).then(|| OsString::from("--auto-resume"));
        arguments.iter().cloned().chain(again).collect()
    })
}

impl SiteArgs {
    /// Starts the shards, cells and actors.
    fn start(&self, addresses: &Addresses, out: &Path) -> anyhow::Result<Vec<Supervised>> {
        let mut processes = Vec::new();
        for (number, address) in addresses.shards.iter().enumerate() {
            let arguments =
                self.shard_arguments(&addresses.learner, address, &out.join(format!("replay-{number}")));
            processes.push(Supervised::start(format!("shard {number}"), Kind::Service, move |_| {
                arguments.clone()
            })?);
        }
        for (number, address) in addresses.cells.iter().enumerate() {
            let arguments = self.cell_arguments(&addresses.learner, address);
            processes.push(Supervised::start(format!("cell {number}"), Kind::Service, move |_| {
                arguments.clone()
            })?);
        }
        let count = self.actors.div_ceil(self.actors_per_process);
        for process in 0..count {
            let first = process * self.actors_per_process;
            let actors = self.actors_per_process.min(self.actors - first);
            let arguments = [
                "actors",
                "--quiet",
                "--models",
                &addresses.models(process as usize),
                "--first",
                &first.to_string(),
                "--actors",
                &actors.to_string(),
                "--environments-per-actor",
                &self.environments_per_actor.to_string(),
            ]
            .map(OsString::from);
            let mut arguments = arguments.to_vec();
            arguments.extend(self.tokens("--replay-token-file", "--model-token-file"));
            let name = format!("the process of actors {first} to {}", first + actors - 1);
            processes.push(Supervised::start(name, Kind::Helper, move |_| arguments.clone())?);
        }
        Ok(processes)
    }

    /// Returns the arguments that pass the token files. `replay` is the option for the shards' token, and `model` is
    /// the option for the policies' token.
    fn tokens(&self, replay: &str, model: &str) -> Vec<OsString> {
        let given = [(replay, &self.replay_token_file), (model, &self.model_token_file)];
        let given = given.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)));
        given.flat_map(|(option, file)| [OsString::from(option), file.into()]).collect()
    }

    /// Reports an unusable token file before any process starts.
    fn check_tokens(&self) -> anyhow::Result<()> {
        self.replay_token_file.as_deref().map(replay_token).transpose()?;
        let model = self.model_token_file.as_deref();
        model.map(|path| model_token("--model-token-file", path)).transpose()?;
        Ok(())
    }

    fn cell_arguments(&self, learner: &str, address: &str) -> Vec<OsString> {
        let mut arguments = ["cell", "--listen", address, "--upstream", learner].map(OsString::from).to_vec();
        if let Some(file) = &self.model_token_file {
            for option in ["--token-file", "--read-token-file"] {
                arguments.extend([option.into(), file.into()]);
            }
        }
        arguments
    }

    fn shard_arguments(&self, learner: &str, address: &str, data: &PathBuf) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            ["replay", "--models", learner, "--listen", address].map(OsString::from).to_vec();
        if self.replay_durability != "none" {
            arguments.extend(["--durability".into(), OsString::from(&self.replay_durability)]);
            arguments.extend(["--data-dir".into(), data.into()]);
        }
        if let Some(size) = &self.replay_memory_max {
            arguments.extend(["--memory-max".into(), size.into()]);
        }
        arguments.extend(self.tokens("--token-file", "--model-token-file"));
        arguments
    }
}
