//! The paper's network (section 4.3). Each coflow of a job has an attribute, which is a single number. The input of the
//! policy network, which has a fixed size, consists of the attributes in descending order, padded with zeros, and of
//! the summary of the job. The network returns one priority for each attribute, including the padding.
//!
//! Each job is evaluated separately; the priorities of all jobs form one list. The input `x_i` of a coflow is the
//! logarithm of 1 plus the number of seconds that it still needs at its busiest port.

use rand_chacha::ChaCha8Rng;

use super::graph::Graph;
use super::scene::Scene;
use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_learn::part::{Part, tensors};

/// Number of elements of the summary of a job.
const SUMMARY: usize = 8;
const HIDDEN: usize = 16;
/// Number of units of the policy network's hidden layer.
const POLICY_HIDDEN: usize = 64;

/// The paper's network.
#[derive(Clone, Debug)]
pub struct PaperNet {
    coflows_max: usize,
    graph: Graph,
    job: Part,
    policy: Part,
    /// Features of the nodes in the most recent forward pass, with shape `[nodes]`.
    own: Vec<f32>,
    /// Inputs of `job` in the most recent forward pass, with shape `[nodes, 2]`.
    described: Vec<f32>,
    /// Inputs of `policy` in the most recent forward pass, with shape `[jobs, inputs]`.
    input: Vec<f32>,
    /// Position of each coflow in the list of its job's coflows, which are sorted by descending attribute.
    places: Vec<usize>,
}

impl PaperNet {
    pub(super) fn new(coflows_max: usize) -> Self {
        let graph = Graph::new(1, 0);
        let job = Part::new("f_job", &[2, HIDDEN, SUMMARY], graph.end());
        let policy = Part::new("policy", &[coflows_max + SUMMARY, POLICY_HIDDEN, coflows_max], job.end());
        let (own, described, input, places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { coflows_max, graph, job, policy, own, described, input, places }
    }

    pub(super) fn parameter_count(&self) -> usize {
        self.policy.end()
    }

    pub(super) fn initial_parameters(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count()];
        let [message, update] = self.graph.parts();
        for part in [message, update, &self.job, &self.policy] {
            part.initialise(&mut parameters, false, rng);
        }
        parameters
    }

    pub(super) fn tensors(&self) -> Vec<NamedTensor> {
        let [message, update] = self.graph.parts();
        tensors([message, update, &self.job, &self.policy])
    }

    pub(super) fn coflows_max(&self) -> usize {
        self.coflows_max
    }

    pub(super) fn forward(&mut self, parameters: &[f32], scene: &Scene, priorities: &mut Vec<f32>) {
        self.own.clear();
        self.own.extend(scene.lengths.iter().map(|seconds| seconds.ln_1p() as f32));
        let attributes = self.graph.forward(parameters, scene, &self.own);
        let of_jobs = by_attribute(scene, attributes);
        self.described.clear();
        self.described
            .extend(attributes.iter().zip(&self.own).flat_map(|(attribute, own)| [*attribute, *own]));
        let mut summaries = Vec::new();
        self.job.forward(parameters, &self.described, &mut summaries);
        let width = self.policy.inputs();
        self.places = vec![0; scene.nodes()];
        self.input.clear();
        self.input.resize(scene.jobs.len() * width, 0.0);
        for (nodes, input) in of_jobs.iter().zip(self.input.chunks_exact_mut(width)) {
            for (place, node) in nodes.iter().enumerate() {
                self.places[*node] = place;
                input[place] = attributes[*node];
                let summary = &summaries[node * SUMMARY..(node + 1) * SUMMARY];
                input[self.coflows_max..].iter_mut().zip(summary).for_each(|(sum, x)| *sum += x);
            }
        }
        let mut lists = Vec::new();
        self.policy.forward(parameters, &self.input, &mut lists);
        let nodes = scene.job_of.iter().zip(&self.places);
        priorities.clear();
        priorities.extend(nodes.map(|(job, place)| lists[job * self.coflows_max + place]));
    }

    pub(super) fn backward(
        &mut self,
        parameters: &[f32],
        scene: &Scene,
        deltas: &[f32],
        gradient: &mut [f32],
    ) {
        let (outputs, width) = (self.policy.outputs(), self.policy.inputs());
        let mut by_list = vec![0.0; scene.jobs.len() * outputs];
        for (node, delta) in deltas.iter().enumerate() {
            by_list[scene.job_of[node] * outputs + self.places[node]] += delta;
        }
        let mut by_input = Vec::new();
        self.policy.backward(parameters, &self.input, &by_list, gradient, &mut by_input);
        let row = |node: usize| &by_input[scene.job_of[node] * width..(scene.job_of[node] + 1) * width];
        let by_summary: Vec<f32> =
            (0..scene.nodes()).flat_map(|node| row(node)[self.coflows_max..].iter().copied()).collect();
        let mut by_described = Vec::new();
        self.job.backward(parameters, &self.described, &by_summary, gradient, &mut by_described);
        let mut by_attribute: Vec<f32> =
            (0..scene.nodes()).map(|node| row(node)[self.places[node]] + by_described[2 * node]).collect();
        self.graph.backward(parameters, scene, &mut by_attribute, gradient);
    }
}

/// Returns the coflows of each job, in descending order of attributes.
fn by_attribute(scene: &Scene, attributes: &[f32]) -> Vec<Vec<usize>> {
    let mut of_jobs = vec![Vec::new(); scene.jobs.len()];
    scene.job_of.iter().enumerate().for_each(|(node, job)| of_jobs[*job].push(node));
    for nodes in &mut of_jobs {
        nodes.sort_by(|a, b| attributes[*b].total_cmp(&attributes[*a]).then(a.cmp(b)));
    }
    of_jobs
}
