//! `iswitch actors`: runs actors for learners in other processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use iswitch_actor_learner::{Actor, ActorCounts, ActorLearnerError, ActorOptions, Job, PolicyFeed};
use iswitch_learn::env::{self, Paced};
use iswitch_manual::print_line;
use iswitch_models::Endpoint;
use iswitch_replay::client::blocking::ReplayClient;
use iswitch_replay::client::{ClientConfig, ClientStats};
use serde::Serialize;

use super::ChildArgs;
use super::access::{ModelAccess, ReplayAccess};
use iswitch_cli::launch;
use iswitch_cli::signals;

/// Arguments of `iswitch actors`.
#[derive(Args)]
pub(crate) struct ActorsArgs {
    /// Addresses of cells, nearest first, and of the first learner
    ///
    /// Each address is HOST:PORT, https://HOST:PORT or unix:PATH. The actors read the policies and the description of
    /// the run from these addresses, and start once the description has been published.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', required = true)]
    models: Vec<Endpoint>,
    /// Number of actors in this process, each in its own thread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    actors: u32,
    /// Index of this process's first actor among all actors of the run
    ///
    /// Indices start at 0. The default is --actors times the rank of this process, which is read from RANK,
    /// OMPI_COMM_WORLD_RANK, SLURM_PROCID or JOB_COMPLETION_INDEX. Without any of these variables, the default is 0.
    #[arg(long, value_name = "N")]
    first: Option<u32>,
    /// Number of environments per actor
    ///
    /// An actor steps all of its environments together.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    environments_per_actor: u32,
    /// Maximum rate of each environment, in steps per second
    ///
    /// The range is 0.001 to 1000000. Use this option to simulate a physical machine, which runs at a fixed rate.
    /// Default: unlimited.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    steps_per_second: Option<f64>,
    /// Print the results as one JSON object at the end of the run
    #[arg(long)]
    json: bool,
    /// Do not print progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    model_access: ModelAccess,
    #[command(flatten)]
    replay_access: ReplayAccess,
    #[command(flatten)]
    child: ChildArgs,
}

/// Result of the actors. Other programs rely on the keys of the JSON object and on their order.
#[derive(Serialize)]
struct ActorsOutcome {
    actors: u32,
    first: u32,
    #[serde(flatten)]
    counts: ActorCounts,
    seconds: f64,
    policies: u64,
    policy_age_ms_max: u64,
    policy_failures: u64,
    retries: u64,
    failovers: u64,
    possible_duplicates: u64,
}

/// Interval at which the progress is displayed.
const SHOWN_EVERY: Duration = Duration::from_secs(10);
/// Maximum time for which this process waits for an actor that is still in a request after the run is over.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

/// State shared by the actors of this process.
struct Shared {
    job: Job,
    policies: PolicyFeed,
    replay: ReplayClient,
    stop: Arc<AtomicBool>,
    counts: Mutex<Vec<ActorCounts>>,
}

impl ActorsArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let stop: Arc<AtomicBool> = Arc::default();
        signals::stop_on_signal(&stop)?;
        self.child.follow_parent(&stop);
        let first = self.first()?;
        let credentials = self.model_access.credentials(&self.models)?;
        // Report an unusable file before waiting for the description of the run.
        self.replay_access.config(&[])?;
        let Some(job) = Job::read(&self.models, &credentials, &stop)? else { return Ok(()) };
        let shared = Arc::new(Shared {
            policies: PolicyFeed::start(&self.models, &credentials, job.policy_len)?,
            replay: ReplayClient::new(ClientConfig {
                seed: u64::from(first),
                ..self.replay_access.config(&job.shards)?
            })?,
            counts: Mutex::new(vec![ActorCounts::default(); self.actors as usize]),
            stop,
            job,
        });
        let begin = Instant::now();
        let (sender, ended) = channel();
        for place in 0..self.actors as usize {
            let options = ActorOptions {
                actor: first as usize + place,
                environments: self.environments_per_actor as usize,
            };
            let (shared, sender) = (Arc::clone(&shared), Sender::clone(&sender));
            let period = self.steps_per_second.map(|rate| Duration::from_secs_f64(rate.recip()));
            std::thread::Builder::new().name(format!("actor-{}", options.actor)).spawn(move || {
                // The receiver no longer exists if the process is about to end.
                let _ = sender.send(act(&shared, place, options, period));
            })?;
        }
        drop(sender);
        let mut shown = begin;
        let mut left = self.actors;
        let mut over_at = None;
        while left > 0 && over_at.is_none_or(|at: Instant| at.elapsed() < GRACE) {
            if let Ok(ended) = ended.recv_timeout(POLL) {
                ended.context("an actor has failed")?;
                left -= 1;
            }
            // An actor that waits for the response to a request does not notice the end of the run.
            if shared.is_over() {
                over_at.get_or_insert_with(Instant::now);
            }
            if !self.quiet && shown.elapsed() >= SHOWN_EVERY {
                shown = Instant::now();
                shared.show(begin.elapsed());
            }
        }
        self.print(&shared, first, begin.elapsed())
    }

    /// Returns the index of this process's first actor among all actors of the run.
    fn first(&self) -> anyhow::Result<u32> {
        if let Some(first) = self.first {
            return Ok(first);
        }
        let rank = launch::rank(|name| std::env::var(name).ok())?.unwrap_or(0);
        u32::try_from(rank).ok().and_then(|rank| rank.checked_mul(self.actors)).with_context(|| {
            format!(
                "rank {rank} times --actors {} exceeds 4294967295; pass --first, or reduce --actors",
                self.actors
            )
        })
    }

    fn print(&self, shared: &Shared, first: u32, elapsed: Duration) -> anyhow::Result<()> {
        let ClientStats { retries, failovers, possible_duplicates } = shared.replay.stats();
        let policies = shared.policies.stats();
        let counts = shared.counts();
        if !self.json {
            if !self.quiet {
                shared.show(elapsed);
            }
            return Ok(());
        }
        let result = ActorsOutcome {
            actors: self.actors,
            first,
            counts,
            seconds: (elapsed.as_secs_f64() * 1e3).round() / 1e3,
            policies: policies.policies,
            policy_age_ms_max: policies.age_ms_max,
            policy_failures: policies.failures,
            retries,
            failovers,
            possible_duplicates,
        };
        print_line!("{}", serde_json::to_string(&result)?)?;
        Ok(())
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (1e-3..=1e6).contains(rate));
    rate.ok_or_else(|| "expected a number from 0.001 to 1000000".to_owned())
}

/// Runs one actor until the run is over.
fn act(
    shared: &Shared,
    place: usize,
    options: ActorOptions,
    period: Option<Duration>,
) -> Result<(), ActorLearnerError> {
    let id = shared.job.env.clone();
    let make = move |count: usize| {
        let all = env::make_vector(&id, count)?;
        Ok(match period {
            Some(period) => all.into_iter().map(|env| Box::new(Paced::new(env, period)) as _).collect(),
            None => all,
        })
    };
    let mut actor = Actor::new(&shared.job, options, &make, &shared.replay)?;
    actor.run(&shared.policies, &shared.stop, &mut |counts| shared.lock()[place] = *counts)?;
    Ok(())
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<ActorCounts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> ActorCounts {
        let mut sum = ActorCounts::default();
        self.lock().iter().for_each(|counts| sum.add(counts));
        sum
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.policies.is_finished()
    }

    fn show(&self, elapsed: Duration) {
        let (counts, policies) = (self.counts(), self.policies.stats());
        eprintln!(
            "{} steps ({:.0} per second), {} episodes, {} items; {} policies, maximum age {} ms",
            counts.steps,
            counts.steps as f64 / elapsed.as_secs_f64(),
            counts.episodes,
            counts.items,
            policies.policies,
            policies.age_ms_max
        );
    }
}
