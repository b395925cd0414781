//! What commands of learners have in common: who does what in a training, what it came to, names of policies.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, bail};
use iswitch::GradientAggregator;
use iswitch_learn::algorithms::trainer::Place;
use serde::Serialize;

use crate::group::GroupArgs;
use crate::launch::{self, Failure};
use crate::run::{Role, RunArgs};

/// Works as one worker, starts all workers and what sums for them, or is what sums. Vectors have `len` floats.
pub fn start(
    (run, group): (&RunArgs, &GroupArgs),
    role: &Role,
    out: &Path,
    len: usize,
    work: impl FnOnce(Place) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    run.prepare(out, role.place())?;
    match *role {
        Role::Worker(place) => work(place)?,
        Role::Parent(workers) => {
            return run.lead(out, workers, Failure::OfFirst, |_| group.host(workers, len));
        }
        Role::Server(workers, address) => {
            let stop = std::sync::Arc::default();
            launch::stop_on_signal(&stop)?;
            group.serve_sums(address, workers, len, &stop)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what cannot be divided among the workers equally; before any of them is started.
pub fn check_shares(name: &str, count: usize, workers: usize) -> anyhow::Result<()> {
    if !count.is_multiple_of(workers) {
        bail!("{name} is {count}, expected a multiple of the {workers} workers");
    }
    Ok(())
}

/// What the sums of a run came to. The keys are an interface.
#[derive(Debug, Serialize)]
pub struct Aggregation {
    workers: usize,
    aggregator: &'static str,
    seconds: f64,
    replicas_identical: bool,
    /// Of this worker.
    sums: u64,
    segments: u64,
    retransmitted: u64,
}

impl Aggregation {
    /// Of a run that began then.
    pub fn new(
        place: Place,
        aggregator: &dyn GradientAggregator,
        replicas_identical: bool,
        begin: Instant,
    ) -> Self {
        let stats = aggregator.stats();
        Self {
            workers: place.workers,
            aggregator: aggregator.name(),
            seconds: (begin.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            replicas_identical,
            sums: stats.rounds,
            segments: stats.segments,
            retransmitted: stats.retransmitted,
        }
    }

    /// How long the run took.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// A line of text.
    pub fn line(&self) -> String {
        format!(
            "{} worker(s), {} sums by {}; replicas identical: {}",
            self.workers,
            self.sums,
            self.aggregator,
            if self.replicas_identical { "yes" } else { "NO" }
        )
    }
}

/// Refuses names that stand for two policies of a comparison.
pub fn check_names(names: &[String]) -> anyhow::Result<()> {
    match repeated(names) {
        None => Ok(()),
        Some(name) => bail!("two policies are called {name}: their results could not be told apart"),
    }
}

/// The first that was there before.
pub fn repeated<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find_map(|(at, value)| values[..at].contains(value).then_some(value))
}

/// The place of the policy that others are compared with: the one that is asked for, whose name `name_of` gives if it
/// is a policy, or the default if it is there, or the first.
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
