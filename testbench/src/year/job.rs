//! A job that runs for the whole year, with restarts by the operator.

use std::fs;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iswitch_harness::cluster::{Group, SOON, total};
use iswitch_harness::netns::Namespace;
use iswitch_harness::process::Finished;
use serde_json::Value;

/// Number of floats in the vector of a job: more than one segment, so that segments can be incomplete separately.
const FLOATS: u32 = 2_000;

/// A job: a group of workers, which check every sum, and what the operator knows about them.
pub(super) struct Job {
    number: usize,
    workers: usize,
    group: Group,
    long_rounds: PathBuf,
    /// Number of exact rounds completed by groups that have ended.
    rounds: u64,
}

/// Where a job runs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) workers: &'a [Namespace],
    pub(super) switch: SocketAddrV4,
    /// Second switch of the workers, if they have one.
    pub(super) standby: Option<SocketAddrV4>,
    pub(super) directory: &'a Path,
}

impl Job {
    /// Starts the workers of a job.
    pub(super) fn start(number: usize, place: Place<'_>, key: Option<&Path>) -> Self {
        let long_rounds = place.directory.join(format!("long-rounds-{number}"));
        let group = start(number, place, &long_rounds, key);
        Self { number, workers: place.workers.len(), group, long_rounds, rounds: 0 }
    }

    /// Waits until the workers have ended because the switch refused them, and returns the error of the first.
    pub(super) fn refused(mut self) -> Result<String, String> {
        let finished = std::mem::take(&mut self.group).finish(SOON);
        match finished.into_iter().find(|worker| !worker.status.success()) {
            Some(worker) => Ok(worker.stderr.trim().to_owned()),
            None => Err(format!("job {} ran, expected a refusal", self.number)),
        }
    }

    /// Starts the workers again, after they have ended.
    pub(super) fn restart(&mut self, place: Place<'_>, key: Option<&Path>) {
        self.group = start(self.number, place, &self.long_rounds, key);
    }

    /// Fails if a worker has ended.
    pub(super) fn check_running(&mut self) -> Result<(), String> {
        if self.group.is_running() {
            return Ok(());
        }
        Err(format!("a worker of job {} has ended although no action ended it", self.number))
    }

    /// Ends the workers after the same round, and adds their exact rounds to the total.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.group.end();
        let results = self.finish()?;
        for (counter, what) in
            [("partial_rounds", "without all workers"), ("missed_rounds", "that a worker missed")]
        {
            let rounds = total(&results, counter);
            if rounds > 0 {
                return Err(format!("job {} has {rounds} rounds {what}", self.number));
            }
        }
        Ok(())
    }

    /// Ends the workers of a job that has lost the worker of the given rank.
    pub(super) fn end_without(&mut self, rank: usize) -> Result<(), String> {
        self.group.kill(rank);
        self.group.end();
        self.finish().map(|_| ())
    }

    /// Kills the workers of a job that the operator has removed.
    pub(super) fn kill(&mut self) {
        self.group = Group::default();
    }

    fn finish(&mut self) -> Result<Vec<Value>, String> {
        let finished = std::mem::take(&mut self.group).finish(SOON);
        let result = |worker: &Finished| -> Result<Value, String> {
            if !worker.status.success() {
                return Err(format!("job {}: {}", self.number, worker.stderr.trim()));
            }
            serde_json::from_str(&worker.stdout).map_err(|error| format!("{error}: {}", worker.stdout))
        };
        let results = finished.iter().map(result).collect::<Result<Vec<_>, _>>()?;
        self.rounds +=
            results.iter().filter_map(|result| result["rounds"].as_u64()).max().unwrap_or_default();
        Ok(results)
    }

    /// Returns the number of exact rounds completed by all groups that have ended.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns the longest round that overlaps the time from `begin` to `end`, both since the Unix epoch. Rounds of
    /// less than 5 ms count as zero.
    pub(super) fn longest_round(&self, begin: Duration, end: Duration) -> Duration {
        let file = |rank| format!("{}.{rank}", self.long_rounds.display());
        let texts = (0..self.workers).map(|rank| fs::read_to_string(file(rank)).unwrap_or_default());
        let text: String = texts.collect();
        let rounds = text.lines().filter_map(|line| {
            let (start, duration) = line.split_once(' ')?;
            Some((millis(start)?, millis(duration)?))
        });
        let overlapping = rounds.filter(|(start, duration)| *start <= end && *start + *duration >= begin);
        overlapping.map(|(_, duration)| duration).max().unwrap_or_default()
    }
}

fn millis(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse::<f64>().ok()? / 1e3).ok()
}

fn start(number: usize, place: Place<'_>, long_rounds: &Path, key: Option<&Path>) -> Group {
    let key = key.map_or(String::new(), |key| format!("--tag-data --key-file {}", key.display()));
    let standby = place.standby.map_or(String::new(), |standby| format!("--standby {standby}"));
    let arguments = format!(
        "--job {number} --job-name year-{number} --floats {FLOATS} --rounds 1000000000 --min-workers 1 \
         --wait-if-halted --long-rounds {} {key} {standby}",
        long_rounds.display()
    );
    Group::of(place.workers, place.switch, &arguments)
}
