//! Workloads of a training run, and the results of policies on them.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp1};

use super::config::DeepWeaveConfig;
use crate::generate::JobSource;
use crate::policy::Policy;
use crate::simulation::{Fabric, simulate};
use crate::workload::Job;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;

/// Jobs and fabric for which a policy is trained.
#[derive(Clone, Debug)]
pub struct Task {
    /// Source of the jobs.
    pub source: JobSource,
    /// Fabric on which the jobs run.
    pub fabric: Fabric,
}

impl Task {
    /// Simulates jobs and returns their completion times, in seconds.
    pub(super) fn job_times(&self, jobs: &[Job], policy: &mut dyn Policy) -> Result<Vec<f64>, StudyError> {
        Ok(simulate(jobs, &self.fabric, policy, &mut |_, _| {})?.job_times)
    }
}

/// Returns the mean time between arrivals of workload `number`, in seconds.
fn interarrival(config: &DeepWeaveConfig, number: usize) -> f64 {
    config.interarrivals[number % config.interarrivals.len()]
}

fn draw(
    config: &DeepWeaveConfig,
    source: &JobSource,
    (jobs, interarrival): (usize, f64),
    rng: &mut ChaCha8Rng,
) -> Vec<Job> {
    let jobs = if interarrival == 0.0 { jobs.min(config.batch_jobs) } else { jobs };
    source.draw(jobs, interarrival, rng)
}

/// Draws the jobs of one agent in an iteration in which each agent has its own jobs.
pub(super) fn own_jobs(
    config: &DeepWeaveConfig,
    source: &JobSource,
    iteration: u64,
    agent: usize,
) -> Vec<Job> {
    let number = iteration as usize * config.agents + agent;
    let mut rng = stream(config.seed, Purpose::SimulatedArrivals, number);
    draw(config, source, (config.own_jobs, interarrival(config, number)), &mut rng)
}

/// Draws the jobs for an iteration in which all agents have the same jobs. The mean number of jobs grows during
/// training (line 15 of the paper's algorithm 1).
pub(super) fn episode_jobs(config: &DeepWeaveConfig, source: &JobSource, iteration: u64) -> Vec<Job> {
    let mut rng = stream(config.seed, Purpose::Arrivals, iteration as usize);
    let done = iteration.saturating_sub(config.imitation_iterations) as f64;
    let mean = config.episode_jobs + config.episode_growth * done;
    let length: f64 = Exp1.sample(&mut rng);
    // The network learns nothing from an episode of one or two jobs.
    let jobs = ((mean * length) as usize).max(3).min(config.episode_jobs_max);
    draw(config, source, (jobs, interarrival(config, iteration as usize)), &mut rng)
}

/// Draws the jobs of a test workload. They are the same in every test.
pub(super) fn test_jobs(config: &DeepWeaveConfig, source: &JobSource, workload: usize) -> Vec<Job> {
    let mut rng = stream(config.seed, Purpose::Evaluation, workload);
    draw(config, source, (config.test_jobs, interarrival(config, workload)), &mut rng)
}

/// Returns the cost of each decision, in seconds: the total time that all jobs spend in the fabric after the decision.
/// There is one decision at each arrival. A cost is the negated sum of the rewards that follow the decision.
pub(super) fn costs_to_go(jobs: &[Job], job_times: &[f64]) -> Vec<f64> {
    let mut times: Vec<f64> = jobs.iter().map(|job| job.arrival).collect();
    times.dedup();
    let spent_from = |time: f64| -> f64 {
        let each = jobs.iter().zip(job_times);
        each.map(|(job, took)| (job.arrival + took - time.max(job.arrival)).max(0.0)).sum()
    };
    times.into_iter().map(spent_from).collect()
}

/// Returns the mean job completion time of a policy, in seconds.
pub(super) fn mean_time(task: &Task, jobs: &[Job], policy: &mut dyn Policy) -> Result<f64, StudyError> {
    let times = task.job_times(jobs, policy)?;
    Ok(times.iter().sum::<f64>() / times.len().max(1) as f64)
}

/// Returns the random stream of an agent in one iteration.
pub(super) fn agent_rng(config: &DeepWeaveConfig, iteration: u64, agent: usize) -> ChaCha8Rng {
    stream(config.seed, Purpose::Actions, iteration as usize * config.agents + agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deepweave::scene::tests::jobs;

    #[test]
    fn costs_to_go_are_the_remaining_times_in_the_system() {
        let mut jobs = jobs(1, 3, 10.0);
        for (job, arrival) in jobs.iter_mut().zip([0.0, 4.0, 4.0]) {
            job.arrival = arrival;
        }
        // The jobs end at 10, 6 and 9.
        assert_eq!(costs_to_go(&jobs, &[10.0, 2.0, 5.0]), [17.0, 6.0 + 2.0 + 5.0]);
    }
}
