//! Local search for good priorities for a batch of jobs that is known in advance. Its result is a reference for learned
//! policies.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::policy::{Policy, Sharing};
use super::simulation::{Fabric, State, simulate};
use super::workload::Job;
use iswitch_study::StudyError;

/// Policy in which each coflow has a fixed priority.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticPriorities {
    /// Key of each coflow, in the order of the jobs and, within a job, in the order of its coflows. The coflow with the
    /// lowest key is sent first.
    pub keys: Vec<f64>,
}

impl StaticPriorities {
    /// Creates priorities that sort the jobs by critical path, shortest first, and the coflows of each job by their
    /// longest path to the end of the job, longest first.
    pub fn by_need(jobs: &[Job], fabric: &Fabric) -> Self {
        let of_job = |job: &Job| {
            let paths = fabric.paths_bytes(job);
            let longest = paths.iter().copied().fold(0.0, f64::max);
            // The factor keeps the coflows of a job closer together than jobs whose critical paths differ by 0.1 %.
            paths.into_iter().map(move |path| longest - 1e-3 * path).collect::<Vec<_>>()
        };
        Self { keys: jobs.iter().flat_map(of_job).collect() }
    }
}

impl Policy for StaticPriorities {
    fn prioritise(&mut self, _state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        ready.sort_by(|a, b| self.keys[*a].total_cmp(&self.keys[*b]).then(a.cmp(b)));
        Sharing::Madd
    }
}

/// Improves priorities by running `evaluations` steps of [`Search::advance`]. Returns the best priorities, and the mean
/// job completion time with them, in seconds.
///
/// # Errors
/// Returns the errors of [`Search::new`].
pub fn local_search(
    jobs: &[Job],
    fabric: &Fabric,
    start: StaticPriorities,
    evaluations: u64,
    rng: &mut ChaCha8Rng,
) -> Result<(StaticPriorities, f64), StudyError> {
    let mut search = Search::new(jobs, fabric, start)?;
    for _ in 0..evaluations {
        search.advance(rng)?;
    }
    Ok((search.best, search.least))
}

/// Local search in progress.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    jobs: &'a [Job],
    fabric: &'a Fabric,
    /// Index of each job's first coflow, followed by the total number of coflows.
    first: Vec<usize>,
    best: StaticPriorities,
    least: f64,
}

impl<'a> Search<'a> {
    /// Creates a search that starts from the given priorities.
    ///
    /// # Errors
    /// Fails if there are no jobs, if the jobs are not sorted by arrival or do not fit the fabric, or if `start` does
    /// not have one priority for each coflow.
    pub fn new(jobs: &'a [Job], fabric: &'a Fabric, start: StaticPriorities) -> Result<Self, StudyError> {
        let mut first = vec![0];
        first.extend(jobs.iter().scan(0, |sum, job| {
            *sum += job.coflows().len();
            Some(*sum)
        }));
        let coflows = first[jobs.len()];
        if coflows == 0 || start.keys.len() != coflows {
            return Err(StudyError::field(
                "number of priorities",
                start.keys.len(),
                format!("{coflows}, at least 1"),
            ));
        }
        let mut search = Self { jobs, fabric, first, best: start, least: f64::INFINITY };
        search.least = search.evaluate(&mut search.best.clone())?;
        Ok(search)
    }

    /// Returns the best priorities so far.
    pub fn best(&self) -> &StaticPriorities {
        &self.best
    }

    /// Returns the mean job completion time with the best priorities found so far, in seconds.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// Runs one evaluation: moves one coflow, or a whole job, next to another coflow, and keeps the change if it
    /// reduces the mean job completion time.
    ///
    /// # Errors
    /// Returns the errors of the simulation. None can occur if [`new`](Self::new) accepted the jobs.
    pub fn advance(&mut self, rng: &mut ChaCha8Rng) -> Result<(), StudyError> {
        let mut other = self.best.clone();
        step(&mut other.keys, &self.first, rng);
        let time = self.evaluate(&mut other)?;
        if time < self.least - 1e-9 {
            (self.best, self.least) = (other, time);
        }
        Ok(())
    }

    fn evaluate(&self, priorities: &mut StaticPriorities) -> Result<f64, StudyError> {
        let times = simulate(self.jobs, self.fabric, priorities, &mut |_, _| {})?.job_times;
        Ok(times.iter().sum::<f64>() / times.len().max(1) as f64)
    }
}

/// Moves a random coflow or job directly before or after another coflow. `first` holds the index of each job's first
/// coflow, followed by the total number of coflows.
fn step(keys: &mut [f64], first: &[usize], rng: &mut ChaCha8Rng) {
    let aim = keys[rng.random_range(0..keys.len())];
    let beside = aim + rng.random_range(-0.5..0.5) * (1e-3 * aim.abs()).max(1e-6);
    let is_job = rng.random_bool(0.5);
    if is_job {
        let job = rng.random_range(0..first.len() - 1);
        let shift = beside - keys[first[job]];
        keys[first[job]..first[job + 1]].iter_mut().for_each(|key| *key += shift);
    } else {
        let moved = rng.random_range(0..keys.len());
        keys[moved] = beside;
    }
}
