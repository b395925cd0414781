//! Job placement: the shortest job starts first, on as few nodes as possible.

use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_placement::generate::synthetic_jobs;
use iswitch_placement::options::{Checkpoint, Queueing};
use iswitch_placement::policy::{Placer, PolicySpec, consolidate};
use iswitch_placement::simulation::{Outcome, Scenario, simulate};
use iswitch_placement::state::State;
use iswitch_placement::{Cluster, Failures, Options, StudyError};

use super::{Figures, mean};

const NODES: usize = 4;
const GPUS_PER_NODE: usize = 8;
const JOBS: usize = 60;
/// Failure rate of each GPU, in failures per year.
const FAILURE_RATE: f64 = 4.0;

/// Starts the job with the least remaining work first. Jobs that do not fit wait, and later jobs may start before them.
struct ShortestFirst;

impl Placer for ShortestFirst {
    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        queue.sort_by(|a, b| state.progress[*a].left.total_cmp(&state.progress[*b].left));
    }

    fn place(&mut self, state: &State<'_>, _job: usize, size: usize, picks: &mut Vec<usize>) {
        consolidate(state, size, picks);
    }
}

/// Returns a batch of synthetic jobs on a cluster whose GPUs fail.
fn scenario(draw: u64) -> Result<Scenario, StudyError> {
    let cluster = Cluster::uniform(NODES, GPUS_PER_NODE)?;
    let pool = synthetic_jobs(JOBS, &mut stream(draw, Purpose::Arrivals, 0))?;
    let failures = Failures::poisson(vec![FAILURE_RATE; cluster.gpus()])?;
    let checkpoint = Checkpoint::YoungDaly { cost: 60.0 };
    let options = Options { checkpoint, queueing: Queueing::FirstFit, ..Options::default() };
    Scenario::new(cluster, pool.jobs().to_vec(), failures, options)
}

/// Compares the policy's mean job completion time, in hours, with those of random placement and best fit.
pub(crate) fn compare(draws: u64) -> Result<Figures, StudyError> {
    let mean_of = |outcome: Outcome| outcome.mean_completion_time().unwrap_or(f64::NAN) / 3600.0;
    let ours = |spec: PolicySpec| mean(draws, |draw| Ok(mean_of(spec.run(&scenario(draw)?, draw)?)));
    let own = mean(draws, |draw| Ok(mean_of(simulate(&scenario(draw)?, &mut ShortestFirst, draw)?)));
    Ok(vec![
        ("shortest-first", own?),
        ("random", ours(PolicySpec::Random)?),
        ("best-fit", ours(PolicySpec::BestFit)?),
    ])
}
