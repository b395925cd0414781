//! Priorities that are searched for a known batch of jobs: what learnt policies are held against, and what they
//! imitate.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::policy::{Policy, Sharing};
use super::simulation::{Fabric, State, simulate};
use super::workload::Job;
use iswitch_study::StudyError;

/// Each coflow has a fixed place in the order, whatever happens.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticPriorities {
    /// By coflow, jobs one after the other; the least comes first.
    pub keys: Vec<f64>,
}

impl StaticPriorities {
    /// Jobs by what they need alone, within a job what has the longest way to its end.
    pub fn by_need(jobs: &[Job]) -> Self {
        let of_job = |job: &Job| {
            let paths = job.paths();
            let longest = paths.iter().copied().fold(0.0, f64::max);
            // A job's coflows lie closer together than jobs that differ by a thousandth.
            paths.into_iter().map(move |path| longest - 1e-3 * path).collect::<Vec<_>>()
        };
        Self { keys: jobs.iter().flat_map(of_job).collect() }
    }
}

impl Policy for StaticPriorities {
    fn prioritise(&mut self, _state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        ready.sort_by(|a, b| self.keys[*a].total_cmp(&self.keys[*b]).then(a.cmp(b)));
        Sharing::InOrder
    }
}

/// Improves priorities for as many evaluations ([`Search::advance`]). Gives the priorities and the mean job completion
/// time with them, in seconds.
///
/// # Errors
/// If jobs are not sorted by arrival or do not fit the fabric.
pub fn local_search(
    jobs: &[Job],
    fabric: Fabric,
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

/// A search that is under way.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    jobs: &'a [Job],
    fabric: Fabric,
    /// Numbers of the jobs' first coflows, and at the end that of all coflows.
    first: Vec<usize>,
    best: StaticPriorities,
    least: f64,
}

impl<'a> Search<'a> {
    /// From priorities for these jobs.
    ///
    /// # Errors
    /// If there are no jobs, they are not sorted by arrival or do not fit the fabric, or there are priorities for
    /// another number of coflows.
    pub fn new(jobs: &'a [Job], fabric: Fabric, start: StaticPriorities) -> Result<Self, StudyError> {
        let mut first = vec![0];
        first.extend(jobs.iter().scan(0, |sum, job| {
            *sum += job.coflows().len();
            Some(*sum)
        }));
        let coflows = first[jobs.len()];
        if coflows == 0 || start.keys.len() != coflows {
            return Err(StudyError::field("priorities", start.keys.len(), format!("{coflows}, at least 1")));
        }
        let mut search = Self { jobs, fabric, first, best: start, least: f64::INFINITY };
        search.least = search.evaluate(&mut search.best.clone())?;
        Ok(search)
    }

    /// The best priorities so far.
    pub fn best(&self) -> &StaticPriorities {
        &self.best
    }

    /// The mean job completion time with them, in seconds.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// One evaluation: puts one coflow, or a whole job, beside another coflow, and keeps that if the mean job
    /// completion time falls.
    ///
    /// # Errors
    /// None that [`new`](Self::new) would not have had.
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

/// Puts a coflow or a job just before or behind a coflow. `first` are the numbers of the jobs' first coflows, and at
/// the end that of all coflows.
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
