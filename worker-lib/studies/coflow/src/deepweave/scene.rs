//! Input of a network: the incomplete coflows of all jobs that have arrived.

use std::ops::Range;

use crate::policy::job_need;
use crate::simulation::{Stage, State};

/// Number of features that describe a coflow.
pub const FEATURES: usize = 21;
/// Names of the features. `open`, `need`, `need_relative` and the features from `all` to `product_max` describe the job
/// of the coflow; the others describe the coflow itself. All times are in seconds at full rate. A time is given as the
/// logarithm of its ratio to `need` (the minimum remaining time of the job), divided by 2; `need` itself is given as
/// the logarithm of its number of seconds, divided by 4.
pub const FEATURE_NAMES: [&str; FEATURES] = [
    // Total time of the job's incomplete coflows if they are sent one after another; the same for those that are ready.
    "all",
    "all_ready",
    // Remaining critical path of the job; remaining time at its busiest port; sum of the remaining times at all ports;
    // whole critical path.
    "path",
    "port_max",
    "port_sum",
    "path_whole",
    // Greatest remaining time of all jobs together at a port that the job uses.
    "rivals_at_port_max",
    // Mean remaining time of the job at a port, weighted by the remaining time of all jobs there; the same, weighted by
    // its square; greatest product of both times at a port, divided by the greatest remaining time of all jobs at a
    // port.
    "overlap",
    "overlap_squared",
    "product_max",
    // Remaining time at the coflow's busiest port; remaining time if all its flows used the same port; remaining path
    // to the end of the job; path after the coflow.
    "bottleneck",
    "size",
    "path_from",
    "path_after",
    // Sum, over ports, of the remaining time multiplied by the number of other ready coflows there; logarithm of 1 plus
    // the largest such number.
    "contended",
    "rivals",
    // Fraction of all ports that the coflow uses; 1 if it is ready, otherwise 0; logarithm of the number of incomplete
    // coflows of its job.
    "ports",
    "ready",
    "open",
    "need",
    // Logarithm of `need` minus the mean of this logarithm over all jobs, divided by 2.
    "need_relative",
];
/// Number of seconds added to a time before its logarithm is taken.
pub(super) const LEAST: f64 = 1e-3;
/// Divisor of logarithmic features, which makes their standard deviation about 1.
const SCALE: f64 = 2.0;
/// Maximum absolute value of a logarithm before it is divided by [`SCALE`].
const LOGARITHM_MAX: f64 = 12.0;

/// Input of a network at one point in time. Its nodes are the incomplete coflows of all jobs that have arrived.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Time, in seconds.
    pub time: f64,
    /// For each node, the number of its coflow in the simulation. Nodes are sorted by height: those on which no other
    /// coflow depends have height 0 and come first.
    pub stages: Vec<usize>,
    /// Numbers, in the simulation, of the jobs that have incomplete coflows.
    pub jobs: Vec<usize>,
    /// Index of each node's job in [`Self::jobs`].
    pub job_of: Vec<usize>,
    /// For each node, the nodes that depend on it.
    pub children: Vec<Vec<usize>>,
    /// For each height, the range of the nodes with this height.
    pub levels: Vec<Range<usize>>,
    /// Features, with shape `[nodes, FEATURES]`.
    pub features: Vec<f32>,
    /// Remaining time of each coflow at its busiest port, in seconds, with shape `[nodes]`.
    pub lengths: Vec<f64>,
    /// Minimum remaining time of each job if it had the fabric to itself, in seconds, with shape `[jobs]`.
    pub needs: Vec<f64>,
}

impl Scene {
    /// Creates the scene of the first `arrived` jobs.
    pub fn of(state: &State<'_>, arrived: usize) -> Self {
        let jobs: Vec<usize> =
            (0..arrived).filter(|job| state.of_job(*job).iter().any(|it| it.complete.is_none())).collect();
        let mut nodes: Vec<(usize, usize, usize)> = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            let first = state.first[*job];
            let open = heights(state, *job).into_iter().enumerate();
            nodes.extend(open.filter_map(|(index, height)| Some((height?, at, first + index))));
        }
        nodes.sort_unstable();
        let stages: Vec<usize> = nodes.iter().map(|(_, _, stage)| *stage).collect();
        let mut node_of = vec![usize::MAX; state.stages.len()];
        stages.iter().enumerate().for_each(|(node, stage)| node_of[*stage] = node);
        let children = |stage: &usize| {
            let Stage { job, index, .. } = state.stages[*stage];
            let followers = state.jobs[job].followers(index).iter();
            followers.map(|follower| node_of[state.first[job] + follower]).collect()
        };
        let mut scene = Self {
            time: state.time,
            children: stages.iter().map(children).collect(),
            levels: levels(&nodes),
            job_of: nodes.iter().map(|(_, job, _)| *job).collect(),
            lengths: stages.iter().map(|it| state.stages[*it].bottleneck_left).collect(),
            stages,
            features: Vec::new(),
            needs: Vec::new(),
            jobs,
        };
        scene.describe(state);
        scene
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.stages.len()
    }

    fn describe(&mut self, state: &State<'_>) {
        let ports = Ports::of(state, &self.jobs);
        let jobs: Vec<_> = self.jobs.iter().map(|job| JobView::of(state, *job, &ports)).collect();
        self.needs = jobs.iter().map(|job| job.need).collect();
        let logarithms = self.needs.iter().map(|need| (need + LEAST).ln());
        let mean = logarithms.sum::<f64>() / jobs.len().max(1) as f64;
        self.features.reserve(self.nodes() * FEATURES);
        for (stage, job) in self.stages.iter().zip(&self.job_of) {
            let row = node_features((state, *stage), &jobs[*job], &ports, mean);
            self.features.extend(row.map(|x| x as f32));
        }
    }
}

/// Returns the height of each incomplete coflow of a job: the number of coflows on the longest chain of coflows that
/// depend on it.
fn heights(state: &State<'_>, job: usize) -> Vec<Option<usize>> {
    let (graph, stages) = (&state.jobs[job], state.of_job(job));
    let mut heights = vec![None; stages.len()];
    for index in graph.order().iter().rev().filter(|index| stages[**index].complete.is_none()) {
        let above = graph.followers(*index).iter().filter_map(|follower| heights[*follower]);
        heights[*index] = Some(above.max().map_or(0, |height: usize| height + 1));
    }
    heights
}

/// Splits nodes, which must be sorted by height, into one range for each height.
fn levels(nodes: &[(usize, usize, usize)]) -> Vec<Range<usize>> {
    let mut start = 0;
    let chunks = nodes.chunk_by(|a, b| a.0 == b.0);
    chunks
        .map(|level| {
            start += level.len();
            start - level.len()..start
        })
        .collect()
}

/// Demand of all jobs at each port.
struct Ports {
    /// Remaining time of all coflows at each port, in seconds.
    total: Vec<f64>,
    sum: f64,
    square_sum: f64,
    most: f64,
    /// Number of ready coflows that use each port.
    ready: Vec<f64>,
}

impl Ports {
    fn of(state: &State<'_>, jobs: &[usize]) -> Self {
        let mut total = vec![0.0; state.ports];
        let mut ready = vec![0.0; state.ports];
        for job in jobs {
            state.add_job_loads(*job, &mut total);
            for stage in state.of_job(*job).iter().filter(|stage| is_ready(stage)) {
                stage.loads.iter().for_each(|(port, _)| ready[*port] += 1.0);
            }
        }
        let most = total.iter().copied().fold(0.0, f64::max);
        let (sum, square_sum) = (total.iter().sum(), total.iter().map(|need| need * need).sum());
        Self { total, sum, square_sum, most, ready }
    }
}

fn is_ready(stage: &Stage) -> bool {
    stage.ready.is_some() && stage.complete.is_none()
}

/// Features of a job.
struct JobView {
    /// Minimum remaining time of the job, in seconds.
    need: f64,
    /// Features that all coflows of the job have in common: logarithms of times relative to `need`.
    common: [f64; 10],
    /// Number of incomplete coflows of the job.
    open: f64,
}

impl JobView {
    fn of(state: &State<'_>, job: usize, ports: &Ports) -> Self {
        let mut loads = Vec::new();
        let need = job_need(state, job, &mut loads);
        let stages = state.of_job(job);
        let over_need = |seconds: f64| logarithm((seconds + LEAST) / (need + LEAST));
        let length = |stage: &Stage| stage.bottleneck_left;
        let weighted = |of: &dyn Fn(f64) -> f64| -> f64 {
            loads.iter().zip(&ports.total).map(|(load, total)| load * of(*total)).sum()
        };
        let used = loads.iter().zip(&ports.total).filter(|(load, _)| **load > 0.0);
        let common = [
            stages.iter().map(length).sum(),
            stages.iter().filter(|stage| is_ready(stage)).map(length).sum(),
            state.path_left(job),
            loads.iter().copied().fold(0.0, f64::max),
            loads.iter().sum(),
            stages.iter().map(|stage| stage.path).fold(0.0, f64::max),
            used.map(|(_, total)| *total).fold(0.0, f64::max),
            // Demand of the job at ports that other jobs need as well.
            weighted(&|total| total) / ports.sum.max(LEAST),
            weighted(&|total| total * total) / ports.square_sum.max(LEAST),
            loads.iter().zip(&ports.total).map(|(x, total)| x * total).fold(0.0, f64::max)
                / ports.most.max(LEAST),
        ];
        let open = stages.iter().filter(|stage| stage.complete.is_none()).count() as f64;
        Self { need, common: common.map(over_need), open }
    }
}

fn logarithm(ratio: f64) -> f64 {
    ratio.ln().clamp(-LOGARITHM_MAX, LOGARITHM_MAX) / SCALE
}

fn node_features(
    (state, number): (&State<'_>, usize),
    job: &JobView,
    ports: &Ports,
    mean: f64,
) -> [f64; FEATURES] {
    let stage = &state.stages[number];
    let need = job.need + LEAST;
    let over_need = |seconds: f64| logarithm((seconds + LEAST) / need);
    let length = stage.bottleneck_left;
    let done = stage.bottleneck - length;
    let others = |port: &usize| (ports.ready[*port] - 1.0).max(0.0);
    let contended: f64 = state.needs(number).map(|(port, need)| need * others(&port)).sum();
    let rivals = stage.loads.iter().map(|(port, _)| others(port)).fold(0.0, f64::max);
    let own = [
        over_need(length),
        over_need(stage.size * stage.left),
        over_need(stage.path - done),
        over_need(stage.path - stage.bottleneck),
        over_need(contended),
        logarithm(1.0 + rivals),
        stage.loads.len() as f64 / ports.total.len() as f64,
        if is_ready(stage) { 1.0 } else { 0.0 },
        logarithm(job.open),
        need.ln() / SCALE / 2.0,
        (need.ln() - mean) / SCALE,
    ];
    let mut row = [0.0; FEATURES];
    let all = job.common.into_iter().chain(own);
    row.iter_mut().zip(all).for_each(|(x, value)| *x = value);
    row
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::generate::{JobSource, synthetic_shape, synthetic_trace};
    use crate::policy::{Policy, PolicySpec, Sharing};
    use crate::simulation::{Fabric, simulate};
    use crate::workload::Job;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    pub(in super::super) const FABRIC: Fabric = Fabric::new(10, 125e6);

    pub(in super::super) fn source(seed: u64) -> JobSource {
        let mut rng = stream(seed, Purpose::Arrivals, 0);
        let trace = synthetic_trace(FABRIC.ports, 60, 1.0, &mut rng).unwrap();
        let coflows = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
        let shapes = (1..9).map(|nodes| synthetic_shape(nodes, 2, &mut rng)).collect();
        JobSource::new(shapes, coflows).unwrap()
    }

    pub(in super::super) fn jobs(seed: u64, count: usize, interarrival: f64) -> Vec<Job> {
        source(seed).draw(count, interarrival, &mut stream(seed, Purpose::Arrivals, 1))
    }

    /// Policy that follows another policy and calls a function before each decision.
    struct Witness<F: FnMut(&State<'_>, usize) + Send>(Box<dyn Policy>, F);

    impl<F: FnMut(&State<'_>, usize) + Send> Policy for Witness<F> {
        fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
            let arrived = state.jobs.iter().take_while(|job| job.arrival <= state.time).count();
            (self.1)(state, arrived);
            self.0.prioritise(state, ready)
        }
    }

    /// Calls `look` with the state and the number of arrived jobs before each decision of a run.
    pub(in super::super) fn witness(jobs: &[Job], look: impl FnMut(&State<'_>, usize) + Send) {
        let policy = PolicySpec::JobSebf.build(FABRIC.capacity);
        simulate(jobs, &FABRIC, &mut Witness(policy, look), &mut |_, _| {}).unwrap();
    }

    pub(in super::super) fn scenes() -> Vec<Scene> {
        let mut scenes = Vec::new();
        witness(&jobs(1, 12, 5.0), |state, arrived| scenes.push(Scene::of(state, arrived)));
        let every = scenes.len() / 6;
        scenes.into_iter().step_by(every).collect()
    }

    #[test]
    fn nodes_are_one_level_above_their_highest_follower() {
        witness(&jobs(2, 20, 10.0), |state, arrived| {
            let scene = Scene::of(state, arrived);
            let height = |node: usize| scene.levels.iter().position(|level| level.contains(&node)).unwrap();
            for (node, stage) in scene.stages.iter().enumerate() {
                let it = &state.stages[*stage];
                assert!(it.complete.is_none() && it.job < arrived);
                assert_eq!(scene.jobs[scene.job_of[node]], it.job);
                let above = scene.children[node].iter().map(|child| height(*child) + 1).max();
                assert_eq!(height(node), above.unwrap_or(0));
                let followers = state.jobs[it.job].followers(it.index);
                assert_eq!(scene.children[node].len(), followers.len());
            }
            let open = state.stages.iter().filter(|it| it.job < arrived && it.complete.is_none()).count();
            assert_eq!((scene.nodes(), scene.features.len()), (open, open * FEATURES));
            assert!(scene.features.iter().all(|x| x.is_finite() && x.abs() < 20.0));
        });
    }
}
