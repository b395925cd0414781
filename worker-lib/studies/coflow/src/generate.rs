//! Generation of random jobs, each with a random shape and a random coflow at each node, and of synthetic coflows and
//! shapes, which are used if there is no trace.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp, LogNormal};
use sha2::{Digest as _, Sha256};

use super::bound::alone;
use super::simulation::Fabric;
use super::trace::{Arrival, CoflowTrace, Shape};
use super::workload::{Coflow, Dependencies, Flow, Job};
use iswitch_learn::algorithms::trainer::first_bytes;
use iswitch_study::StudyError;

/// Source of random jobs. It draws the shape of each job, the coflow of each of its nodes, and the time to the next
/// job.
#[derive(Clone, Debug)]
pub struct JobSource {
    shapes: Vec<Shape>,
    coflows: Vec<Coflow>,
}

impl JobSource {
    /// Creates a source that draws from these shapes and coflows with equal probability.
    ///
    /// # Errors
    /// Fails if there are no shapes or no coflows, or if a shape is invalid.
    pub fn new(shapes: Vec<Shape>, coflows: Vec<Coflow>) -> Result<Self, StudyError> {
        for (name, count) in [("number of shapes", shapes.len()), ("number of coflows", coflows.len())] {
            if count == 0 {
                return Err(StudyError::field(name, count, "at least 1"));
            }
        }
        shapes.iter().try_for_each(Shape::check)?;
        Ok(Self { shapes, coflows })
    }

    /// Returns the shapes.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Returns the coflows.
    pub fn coflows(&self) -> &[Coflow] {
        &self.coflows
    }

    /// Returns a source with the same shapes and a random subset of the coflows. `share` is the fraction of the coflows
    /// that the subset contains; it contains at least one.
    #[must_use]
    pub fn part(&self, share: f64, rng: &mut ChaCha8Rng) -> Self {
        let count = ((self.coflows.len() as f64 * share).round() as usize).clamp(1, self.coflows.len());
        let mut chosen = rand::seq::index::sample(rng, self.coflows.len(), count).into_vec();
        chosen.sort_unstable();
        let coflows = chosen.into_iter().map(|at| self.coflows[at].clone()).collect();
        Self { shapes: self.shapes.clone(), coflows }
    }

    /// Returns one job of each shape.
    pub fn one_of_each(&self) -> Vec<Job> {
        let job = |shape| self.job(0.0, shape, |_| 0).expect("all shapes are valid");
        self.shapes.iter().map(job).collect()
    }

    /// Returns a digest that identifies the source.
    pub fn digest(&self) -> u64 {
        let mut hash = Sha256::new();
        for shape in &self.shapes {
            hash.update(format!("{} {:?}\n", shape.nodes, shape.edges));
        }
        for coflow in &self.coflows {
            hash.update(format!("{} {:?}\n", coflow.ports(), coflow.flows()));
        }
        first_bytes(hash)
    }

    /// Draws `count` jobs, which arrive in a Poisson process. `interarrival` is the mean time between arrivals, in
    /// seconds; if it is 0, all jobs arrive at once.
    ///
    /// # Panics
    /// Panics if `interarrival` is negative or not finite.
    pub fn draw(&self, count: usize, interarrival: f64, rng: &mut ChaCha8Rng) -> Vec<Job> {
        assert!(
            interarrival >= 0.0 && interarrival.is_finite(),
            "interarrival is {interarrival}, expected a number >= 0"
        );
        let distance = (interarrival > 0.0).then(|| Exp::new(1.0 / interarrival).expect("a valid rate"));
        let mut time = 0.0;
        (0..count)
            .map(|_| {
                time += distance.map_or(0.0, |distance| distance.sample(rng));
                let shape = &self.shapes[rng.random_range(0..self.shapes.len())];
                self.job(time, shape, |_| rng.random_range(0..self.coflows.len()))
                    .expect("all shapes are valid")
            })
            .collect()
    }

    /// Creates a job with the given shape. `choose` returns, for each node, the index of the coflow to place at it.
    ///
    /// # Errors
    /// Fails if the shape has a cycle, or an edge to or from a node that does not exist.
    pub fn job(
        &self,
        arrival: f64,
        shape: &Shape,
        mut choose: impl FnMut(usize) -> usize,
    ) -> Result<Job, StudyError> {
        shape.check()?;
        let coflows = (0..shape.nodes).map(|node| self.coflows[choose(node)].clone()).collect();
        let mut dependencies = vec![Dependencies::default(); shape.nodes];
        for (before, after) in &shape.edges {
            dependencies[*after].starts_after.push(*before);
        }
        Job::new(arrival, coflows, dependencies)
    }
}

/// Gives each job a deadline: its isolated time multiplied by 1 + u, where u is drawn uniformly from 0 to `slack`
/// (exclusive). The evaluation of Varys gives coflows such deadlines.
///
/// # Errors
/// Fails if `slack` is negative or not finite.
pub fn set_deadlines(
    jobs: &mut [Job],
    fabric: &Fabric,
    slack: f64,
    rng: &mut ChaCha8Rng,
) -> Result<(), StudyError> {
    if !(slack.is_finite() && slack >= 0.0) {
        return Err(StudyError::field("slack of deadlines", slack, "a number >= 0"));
    }
    for job in jobs {
        job.deadline = Some(alone(job, fabric) * (1.0 + slack * rng.random::<f64>()));
    }
    Ok(())
}

/// Probability that a coflow is wide. As in the FB2010 benchmark, most coflows are narrow and short, and a few wide
/// ones hold nearly all bytes.
const WIDE: f64 = 0.3;
/// Maximum number of mappers, and maximum number of reducers, of a narrow coflow.
const NARROW_PORTS_MAX: usize = 5;
/// Median, and standard deviation of the logarithm, of the log-normal distribution of the bytes that each reducer of a
/// narrow coflow receives.
const NARROW_SIZE: (f64, f64) = (4e6, 1.5);
/// Median, and standard deviation of the logarithm, of the log-normal distribution of the bytes that each reducer of a
/// wide coflow receives.
const WIDE_SIZE: (f64, f64) = (100e6, 1.8);

/// Generates a trace that resembles the FB2010 benchmark. `interarrival` is the mean time between arrivals of coflows,
/// in seconds.
///
/// # Errors
/// Fails if there are no ports, or if `interarrival` is out of range.
pub fn synthetic_trace(
    ports: usize,
    coflows: usize,
    interarrival: f64,
    rng: &mut ChaCha8Rng,
) -> Result<CoflowTrace, StudyError> {
    let distance = Exp::new(1.0 / interarrival)
        .map_err(|_| StudyError::field("interarrival", interarrival, "a number of seconds above 0"))?;
    let mut time = 0.0;
    let arrival = |_| {
        time += distance.sample(rng);
        Ok(Arrival { time, coflow: synthetic_coflow(ports, rng)? })
    };
    let arrivals = (0..coflows).map(arrival).collect::<Result<_, StudyError>>()?;
    Ok(CoflowTrace { ports, arrivals })
}

fn synthetic_coflow(ports: usize, rng: &mut ChaCha8Rng) -> Result<Coflow, StudyError> {
    let is_wide = rng.random_bool(WIDE);
    let most = if is_wide { ports } else { ports.min(NARROW_PORTS_MAX) };
    let (median, deviation) = if is_wide { WIDE_SIZE } else { NARROW_SIZE };
    let size = LogNormal::new(f64::ln(median), deviation).expect("the deviation is above 0");
    let some = |rng: &mut ChaCha8Rng| {
        let count = rng.random_range(1..=most.max(1)).min(ports);
        rand::seq::index::sample(rng, ports, count).into_vec()
    };
    let (from, to) = (some(rng), some(rng));
    let mut flows = Vec::with_capacity(from.len() * to.len());
    for to in to {
        let bytes = size.sample(rng).max(1.0) / from.len() as f64;
        flows.extend(from.iter().map(|from| Flow { from: *from, to, size: bytes }));
    }
    Coflow::new(ports, flows)
}

/// Generates a shape with `nodes` nodes. Each node except the last precedes at least one and at most `most` of the six
/// nodes that follow it.
pub fn synthetic_shape(nodes: usize, most: usize, rng: &mut ChaCha8Rng) -> Shape {
    const REACH: usize = 6;
    let mut edges = Vec::new();
    for before in 0..nodes.saturating_sub(1) {
        for _ in 0..rng.random_range(1..=most.max(1)) {
            let edge = (before, before + 1 + rng.random_range(0..REACH.min(nodes - 1 - before)));
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        }
    }
    Shape { nodes, edges }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    #[test]
    fn generated_jobs_have_the_given_shapes_and_arrival_rate() {
        let mut rng = stream(1, Purpose::Arrivals, 0);
        let trace = synthetic_trace(10, 50, 2.0, &mut rng).unwrap();
        let coflows: Vec<_> = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
        let shape = Shape { nodes: 3, edges: vec![(0, 2), (1, 2)] };
        let source = JobSource::new(vec![shape], coflows).unwrap();
        let jobs = source.draw(2000, 5.0, &mut rng);
        assert!((jobs[1999].arrival / 2000.0 - 5.0).abs() < 0.4, "{}", jobs[1999].arrival);
        assert!(jobs.iter().all(|job| job.followers(0) == [2] && job.coflows().len() == 3));
        assert!(source.draw(5, 0.0, &mut rng).iter().all(|job| job.arrival == 0.0));
    }

    #[test]
    fn deadlines_lie_between_the_isolated_time_and_the_slack() {
        let mut rng = stream(1, Purpose::Arrivals, 0);
        let trace = synthetic_trace(6, 400, 2.0, &mut rng).unwrap();
        let job = |arrival: Arrival| Job::single(arrival.time, arrival.coflow).unwrap();
        let mut jobs: Vec<_> = trace.arrivals.into_iter().map(job).collect();
        let fabric = Fabric::new(6, 1e6);
        set_deadlines(&mut jobs, &fabric, 2.0, &mut rng).unwrap();
        let ratio = |job: &Job| job.deadline.unwrap() / (job.coflows()[0].bottleneck() / 1e6);
        assert!(jobs.iter().map(ratio).all(|ratio| (1.0..3.0).contains(&ratio)));
        assert!((jobs.iter().map(ratio).sum::<f64>() / 400.0 - 2.0).abs() < 0.15);
        let error = set_deadlines(&mut jobs, &fabric, -1.0, &mut rng).unwrap_err().to_string();
        assert_eq!(error, "slack of deadlines is -1, expected a number >= 0");
    }

    #[test]
    fn shapes_with_cycles_are_refused() {
        let mut rng = stream(1, Purpose::Arrivals, 0);
        let coflows = vec![synthetic_coflow(4, &mut rng).unwrap()];
        let shape = Shape { nodes: 2, edges: vec![(0, 1), (1, 0)] };
        let error = JobSource::new(vec![shape], coflows).unwrap_err().to_string();
        assert_eq!(error, "coflows wait for each other: 1 -> 0 -> 1");
    }

    #[test]
    fn synthetic_shapes_are_acyclic_with_one_final_node() {
        let mut rng = stream(3, Purpose::Arrivals, 0);
        for nodes in 1..20 {
            let shape = synthetic_shape(nodes, 2, &mut rng);
            assert!(shape.edges.iter().all(|(before, after)| before < after && *after < nodes));
            let has_after = |node: usize| shape.edges.iter().any(|(before, _)| *before == node);
            assert!((0..nodes - 1).all(has_after) && !has_after(nodes - 1));
        }
    }
}
