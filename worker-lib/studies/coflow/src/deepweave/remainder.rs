//! Simulation of the remaining parts of the current jobs in a fixed order. The result is the cost of this order if no
//! more jobs arrive.

use super::scene::Scene;
use crate::policy::Sharing;
use crate::simulation::{Allocation, Fabric, Sending, Stage, State};

/// Coflow that is not complete.
#[derive(Clone, Debug)]
struct Node {
    job: usize,
    /// Flows that remain to be sent; `None` if all flows are complete.
    sending: Option<Box<Sending>>,
    /// Number of incomplete coflows that must complete before this coflow can start.
    waits: usize,
    /// Number of incomplete coflows that must complete before this coflow can complete.
    held: usize,
}

/// Remaining parts of the jobs of a scene. Each coflow has the index of its node in the scene.
#[derive(Clone, Debug)]
pub struct Remainder {
    fabric: Fabric,
    nodes: Vec<Node>,
    /// For each node, the nodes that cannot start before it completes.
    starts: Vec<Vec<usize>>,
    /// For each node, the nodes that cannot complete before it does.
    ends: Vec<Vec<usize>>,
    /// Number of incomplete coflows of each job.
    jobs: Vec<usize>,
    run: Run,
}

/// State of a simulated run.
#[derive(Clone, Debug, Default)]
struct Run {
    /// Flows of the nodes that are ready but not fully sent.
    sendings: Vec<Option<Box<Sending>>>,
    waits: Vec<usize>,
    held: Vec<usize>,
    jobs: Vec<usize>,
    /// Nodes that are ready but not complete, in the order of their keys.
    active: Vec<usize>,
    /// Nodes of `active` that are not fully sent, in the same order.
    order: Vec<usize>,
    allocation: Allocation,
}

impl Remainder {
    /// Creates the remaining parts from a scene and from the state for which the scene was created.
    pub fn of(state: &State<'_>, scene: &Scene) -> Self {
        let mut node_of = vec![usize::MAX; state.stages.len()];
        scene.stages.iter().enumerate().for_each(|(node, stage)| node_of[*stage] = node);
        let mut nodes = Vec::new();
        let mut starts = vec![Vec::new(); scene.nodes()];
        let mut ends = vec![Vec::new(); scene.nodes()];
        let mut jobs = vec![0; scene.jobs.len()];
        for (node, number) in scene.stages.iter().enumerate() {
            let Stage { job, index, ready, .. } = state.stages[*number];
            let dependencies = &state.jobs[job].dependencies()[index];
            let open = |others: &[usize], behind: &mut Vec<Vec<usize>>| {
                let others = others.iter().map(|other| node_of[state.first[job] + other]);
                let open: Vec<usize> = others.filter(|other| *other != usize::MAX).collect();
                open.iter().for_each(|other| behind[*other].push(node));
                open.len()
            };
            let waits = open(&dependencies.starts_after, &mut starts);
            let held = open(&dependencies.finishes_after, &mut ends);
            let sending = if ready.is_some() {
                state.sendings[*number].clone()
            } else {
                Some(Box::new(Sending::new(&state.jobs[job].coflows()[index], &state.fabric)))
            };
            nodes.push(Node { job: scene.job_of[node], sending, waits, held });
            jobs[scene.job_of[node]] += 1;
        }
        Self { fabric: state.fabric.clone(), nodes, starts, ends, jobs, run: Run::default() }
    }

    /// Returns the sum, over all jobs, of the time from the current state to their completion, in seconds. The coflow
    /// with the lowest key is sent first. Returns `None` as soon as it is certain that the sum is at least `limit`.
    ///
    /// # Panics
    /// Panics if the number of keys is not the number of nodes.
    pub fn cost(&mut self, keys: &[f64], limit: f64) -> Option<f64> {
        assert_eq!(keys.len(), self.nodes.len(), "the number of keys must be the number of coflows");
        self.start(keys);
        let mut open = self.jobs.len();
        let (mut time, mut sum) = (0.0, 0.0);
        while open > 0 {
            time += self.send();
            if sum + time * open as f64 >= limit {
                return None;
            }
            let done = self.complete(keys);
            open -= done;
            sum += time * done as f64;
        }
        Some(sum)
    }

    fn start(&mut self, keys: &[f64]) {
        let Self { nodes, jobs, run, .. } = self;
        let of_ready = |node: &Node| if node.waits == 0 { node.sending.clone() } else { None };
        fill(&mut run.sendings, nodes.iter().map(of_ready));
        fill(&mut run.waits, nodes.iter().map(|node| node.waits));
        fill(&mut run.held, nodes.iter().map(|node| node.held));
        fill(&mut run.jobs, jobs.iter().copied());
        fill(&mut run.active, (0..nodes.len()).filter(|node| nodes[*node].waits == 0));
        run.active.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
    }

    /// Computes rates, and advances the simulation at these rates until they must be recomputed. Returns the simulated
    /// duration in seconds.
    fn send(&mut self) -> f64 {
        let Run { sendings, active, order, allocation, .. } = &mut self.run;
        fill(order, active.iter().copied().filter(|node| sendings[*node].is_some()));
        allocation.share(sendings, order, &self.fabric, Sharing::Madd);
        let seconds = allocation.next_end(sendings, order, f64::INFINITY);
        // If no coflow has bytes left to send, at least one can complete immediately.
        let seconds = if seconds.is_finite() { seconds } else { 0.0 };
        for node in order {
            let Some(sending) = &mut sendings[*node] else { continue };
            sending.advance(seconds);
            if sending.is_sent() {
                sendings[*node] = None;
            }
        }
        seconds
    }

    /// Removes the coflows that have completed, and returns the number of jobs that have thereby completed.
    fn complete(&mut self, keys: &[f64]) -> usize {
        let Self { nodes, starts, ends, run, .. } = self;
        let mut done = 0;
        while let Some(at) =
            run.active.iter().position(|node| run.sendings[*node].is_none() && run.held[*node] == 0)
        {
            let node = run.active.remove(at);
            ends[node].iter().for_each(|other| run.held[*other] -= 1);
            for next in &starts[node] {
                run.waits[*next] -= 1;
                if run.waits[*next] == 0 {
                    run.sendings[*next].clone_from(&nodes[*next].sending);
                    let place = run.active.partition_point(|other| keys[*other] <= keys[*next]);
                    run.active.insert(place, *next);
                }
            }
            let open = &mut run.jobs[nodes[node].job];
            *open -= 1;
            done += usize::from(*open == 0);
        }
        done
    }
}

fn fill<T>(values: &mut Vec<T>, with: impl Iterator<Item = T>) {
    values.clear();
    values.extend(with);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deepweave::scene::tests::{FABRIC, jobs};
    use crate::policy::Policy;
    use crate::search::StaticPriorities;
    use crate::simulation::simulate;
    use crate::workload::{Coflow, Dependencies, Flow, Job};

    /// Policy that follows fixed keys and records their computed cost at each decision.
    struct Prophet {
        keys: StaticPriorities,
        said: Vec<(f64, usize, f64)>,
    }

    impl Policy for Prophet {
        fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
            let scene = Scene::of(state, state.jobs.len());
            let keys: Vec<f64> = scene.stages.iter().map(|stage| self.keys.keys[*stage]).collect();
            let mut remainder = Remainder::of(state, &scene);
            let cost = remainder.cost(&keys, f64::INFINITY).unwrap();
            assert_eq!(remainder.cost(&keys, cost), None);
            assert_eq!(remainder.cost(&keys, cost * 1.001 + 1e-6), Some(cost));
            self.said.push((state.time, scene.jobs.len(), cost));
            self.keys.prioritise(state, ready)
        }
    }

    fn check(jobs: &[Job], fabric: &Fabric) {
        let mut prophet = Prophet { keys: StaticPriorities::by_need(jobs, fabric), said: Vec::new() };
        let times = simulate(jobs, fabric, &mut prophet, &mut |_, _| {}).unwrap().job_times;
        assert!(!prophet.said.is_empty());
        for (time, open, cost) in prophet.said {
            let mut left: Vec<f64> = times.iter().map(|end| (end - time).max(0.0)).collect();
            left.sort_by(f64::total_cmp);
            let want: f64 = left[left.len() - open..].iter().sum();
            assert!((cost - want).abs() < 1e-6 * want.max(1.0), "at {time}: {cost}, expected {want}");
        }
    }

    #[test]
    fn predicted_completion_times_match_the_simulation() {
        (1..6).for_each(|seed| check(&jobs(seed, 15, 0.0), &FABRIC));
    }

    #[test]
    fn finish_dependencies_delay_predicted_completions() {
        let coflow = |from, size| Coflow::new(3, vec![Flow { from, to: from, size }]).unwrap();
        let dependencies = vec![
            Dependencies::default(),
            Dependencies { starts_after: vec![0], finishes_after: vec![] },
            Dependencies { starts_after: vec![], finishes_after: vec![1] },
        ];
        let coflows = vec![coflow(0, 100.0), coflow(1, 50.0), coflow(2, 10.0)];
        let job = Job::new(0.0, coflows, dependencies).unwrap();
        check(&[job.clone(), job], &Fabric::new(3, 10.0));
    }
}
