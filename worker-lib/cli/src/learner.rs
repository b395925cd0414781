//! Code shared by the commands that train a policy. It determines the roles of the processes, collects the aggregation
//! results, and checks the names of policies.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};
use iswitch::GradientAggregator;
use iswitch_learn::algorithms::trainer::World;
use serde::Serialize;

use crate::group::GroupArgs;
use crate::launch::Failure;
use crate::run::{Role, RunArgs};
use crate::signals;

/// Runs the process in its `role`: as one worker, as the parent process of all workers and their aggregator, or as the
/// parameter server. The vectors to sum have `len` floats.
pub fn start(
    (run, group): (&RunArgs, &GroupArgs),
    role: &Role,
    out: &Path,
    len: usize,
    work: impl FnOnce(World) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    run.prepare(out, role.world())?;
    match *role {
        Role::Worker(world) => work(world)?,
        Role::Parent(workers) => {
            return run.lead(out, workers, Failure::OfFirst, &[], |_| group.host(workers, len));
        }
        Role::Server(workers, address) => {
            let stop = std::sync::Arc::default();
            signals::stop_on_signal(&stop)?;
            group.serve_sums(address, workers, len, &stop)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks that a count can be divided equally among the workers. Must be called before any worker is started.
pub fn check_shares(name: &str, count: usize, workers: usize) -> anyhow::Result<()> {
    if !count.is_multiple_of(workers) {
        bail!("{name} is {count}, expected a multiple of the number of workers ({workers})");
    }
    Ok(())
}

/// Aggregation results of a run. Other programs rely on the keys of the JSON object.
#[derive(Debug, Serialize)]
pub struct Aggregation {
    workers: usize,
    aggregator: &'static str,
    seconds: f64,
    replicas_identical: bool,
    /// Number of rounds that this worker has completed. The counters below also apply only to this worker.
    sums: u64,
    segments: u64,
    retransmitted: u64,
}

impl Aggregation {
    /// Collects the results of a run that began at `begin`.
    pub fn new(
        world: World,
        aggregator: &dyn GradientAggregator,
        replicas_identical: bool,
        begin: Instant,
    ) -> Self {
        let stats = aggregator.stats();
        Self {
            workers: world.size,
            aggregator: aggregator.name(),
            seconds: (begin.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            replicas_identical,
            sums: stats.rounds,
            segments: stats.segments,
            retransmitted: stats.retransmitted,
        }
    }

    /// Returns the duration of the run, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Returns the results as a line of text.
    pub fn line(&self) -> String {
        format!(
            "{} worker(s), {} rounds summed by {}; replicas identical: {}",
            self.workers,
            self.sums,
            self.aggregator,
            if self.replicas_identical { "yes" } else { "NO" }
        )
    }
}

/// Checks that no two policies in a comparison have the same name.
pub fn check_names(names: &[String]) -> anyhow::Result<()> {
    match repeated(names) {
        None => Ok(()),
        Some(name) => bail!("two policies are named {name}; give each policy a different name"),
    }
}

/// Returns the first value that equals an earlier value.
pub fn repeated<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find_map(|(at, value)| values[..at].contains(value).then_some(value))
}

/// Returns the index of the baseline policy, with which the other policies are compared. If `asked` is given, `name_of`
/// converts it to the name of the baseline. Otherwise, the baseline is the policy named `default` or, if there is none,
/// the first policy.
pub fn baseline(
    asked: Option<&str>,
    default: &str,
    names: &[String],
    name_of: impl Fn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<usize> {
    let Some(asked) = asked else {
        return Ok(names.iter().position(|name| name == default).unwrap_or(0));
    };
    let name = name_of(asked).unwrap_or_else(|_| asked.to_owned());
    names.iter().position(|other| *other == name).with_context(|| {
        format!("baseline is {asked}, expected one of the policies compared: {}", names.join(", "))
    })
}
