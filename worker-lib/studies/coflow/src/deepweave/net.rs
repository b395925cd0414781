//! Networks that assign priorities to coflows.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::node_net::NodeNet;
use super::paper_net::PaperNet;
use super::scene::Scene;
use crate::workload::Job;
use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_study::StudyError;

/// Kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum NetKind {
    /// Network with one head per coflow, for jobs with any number of coflows. Its priorities adjust the order of
    /// JobSEBF.
    Node,
    /// The paper's network: one head for all coflows of a job, up to a maximum number.
    Paper,
}

/// Output of a network for the nodes of a scene, or the gradient of the loss with respect to this output. Each field
/// has shape `[nodes]`.
#[derive(Clone, Debug, Default)]
pub struct Advice {
    /// Priorities; the coflow with the highest priority is sent first.
    pub priorities: Vec<f32>,
    /// Logits of the probabilities with which the search chooses each node as the one to move.
    pub moved: Vec<f32>,
    /// Logits of the probabilities with which the search chooses each node as the new neighbour of the moved one.
    pub aims: Vec<f32>,
}

/// Network without its parameters, which the caller owns.
#[derive(Clone, Debug)]
pub enum Net {
    /// Network with one head per coflow.
    Node(Box<NodeNet>),
    /// The paper's network.
    Paper(Box<PaperNet>),
}

impl Net {
    /// Creates a network of the given kind. The paper's network supports jobs of up to `coflows_max` coflows.
    pub fn new(kind: NetKind, coflows_max: usize) -> Self {
        match kind {
            NetKind::Node => Self::Node(Box::new(NodeNet::new())),
            NetKind::Paper => Self::Paper(Box::new(PaperNet::new(coflows_max))),
        }
    }

    /// Returns the number of parameters.
    pub fn parameter_count(&self) -> usize {
        match self {
            Self::Node(net) => net.parameter_count(),
            Self::Paper(net) => net.parameter_count(),
        }
    }

    /// Returns random initial parameters. With these parameters, the order of a network of kind [`NetKind::Node`] is
    /// that of JobSEBF.
    pub fn initial_parameters(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        match self {
            Self::Node(net) => net.initial_parameters(rng),
            Self::Paper(net) => net.initial_parameters(rng),
        }
    }

    /// Returns the names and ranges of the parameters.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        match self {
            Self::Node(net) => net.tensors(),
            Self::Paper(net) => net.tensors(),
        }
    }

    /// Returns whether the network's priorities adjust the order of JobSEBF. If so, the key of a coflow is the
    /// logarithm of the remaining need of its job, minus the priority; otherwise, the key is the negated priority. The
    /// coflow with the lowest key is sent first.
    pub fn is_residual(&self) -> bool {
        matches!(self, Self::Node(_))
    }

    /// Checks that the network supports these jobs.
    ///
    /// # Errors
    /// Fails if a job has more coflows than the network supports.
    pub fn check(&self, jobs: &[Job]) -> Result<(), StudyError> {
        let Self::Paper(net) = self else { return Ok(()) };
        let most = net.coflows_max();
        match jobs.iter().position(|job| job.coflows().len() > most) {
            None => Ok(()),
            Some(job) => {
                let (field, count) = (format!("number of coflows of job {job}"), jobs[job].coflows().len());
                let expected = format!("at most {most}, the maximum that the network supports");
                Err(StudyError::field(field, count, expected))
            }
        }
    }

    /// Overwrites `advice` with the output of the network. The paper's network does not advise a search, so it sets
    /// `moved` and `aims` to 0.
    ///
    /// # Panics
    /// Panics if the network does not support a job; see [`Self::check`].
    pub fn forward(&mut self, parameters: &[f32], scene: &Scene, advice: &mut Advice) {
        match self {
            Self::Node(net) => net.forward(parameters, scene, advice),
            Self::Paper(net) => {
                net.forward(parameters, scene, &mut advice.priorities);
                for logits in [&mut advice.moved, &mut advice.aims] {
                    logits.clear();
                    logits.resize(scene.nodes(), 0.0);
                }
            }
        }
    }

    /// Adds the gradient of the loss with respect to the parameters to `gradient`. `deltas` is the gradient of the loss
    /// with respect to the network's output; empty fields of `deltas` count as zeros. Must be called after
    /// [`Self::forward`].
    pub fn backward(&mut self, parameters: &[f32], scene: &Scene, deltas: &Advice, gradient: &mut [f32]) {
        match self {
            Self::Node(net) => net.backward(parameters, scene, deltas, gradient),
            Self::Paper(net) => net.backward(parameters, scene, &deltas.priorities, gradient),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deepweave::scene::tests::{jobs, scenes};
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    /// Compares the gradient of a weighted sum of all outputs with finite differences.
    fn check_gradient(kind: NetKind) {
        let mut net = Net::new(kind, 12);
        let mut rng = stream(1, Purpose::Weights, 0);
        let mut parameters = net.initial_parameters(&mut rng);
        parameters.iter_mut().enumerate().for_each(|(at, x)| *x += 0.05 * (at as f32).sin());
        for scene in scenes() {
            let weights =
                |by: f32| -> Vec<f32> { (0..scene.nodes()).map(|at| (at as f32 * by).cos()).collect() };
            let weights = Advice { priorities: weights(1.7), moved: weights(0.7), aims: weights(2.3) };
            let mut advice = Advice::default();
            let mut loss = |net: &mut Net, parameters: &[f32]| -> f64 {
                net.forward(parameters, &scene, &mut advice);
                let all = [&advice.priorities, &advice.moved, &advice.aims].into_iter().flatten();
                let weights = [&weights.priorities, &weights.moved, &weights.aims].into_iter().flatten();
                all.zip(weights).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum()
            };
            loss(&mut net, &parameters);
            let mut gradient = vec![0.0; parameters.len()];
            net.backward(&parameters, &scene, &weights, &mut gradient);
            for at in (0..parameters.len()).step_by(parameters.len() / 80) {
                let mut moved = parameters.clone();
                moved[at] += 4e-3;
                let above = loss(&mut net, &moved);
                moved[at] -= 8e-3;
                let slope = (above - loss(&mut net, &moved)) / 8e-3;
                let got = f64::from(gradient[at]);
                assert!((slope - got).abs() < 2e-2 * slope.abs().max(1.0), "{kind:?} {at}: {slope}, {got}");
            }
        }
    }

    #[test]
    fn gradients_of_priorities_match_finite_differences() {
        check_gradient(NetKind::Node);
        check_gradient(NetKind::Paper);
    }

    #[test]
    fn an_untrained_node_network_equals_job_sebf() {
        let mut net = Net::new(NetKind::Node, 12);
        let parameters = net.initial_parameters(&mut stream(1, Purpose::Weights, 0));
        let mut advice = Advice::default();
        for scene in scenes() {
            net.forward(&parameters, &scene, &mut advice);
            for part in [&advice.priorities, &advice.moved, &advice.aims] {
                assert!(part.len() == scene.nodes() && part.iter().all(|x| *x == 0.0));
            }
        }
    }

    #[test]
    fn jobs_larger_than_the_network_of_the_paper_are_reported() {
        let jobs = jobs(1, 10, 10.0);
        let most = jobs.iter().map(|job| job.coflows().len()).max().unwrap();
        assert!(Net::new(NetKind::Paper, most).check(&jobs).is_ok());
        let text = Net::new(NetKind::Paper, most - 1).check(&jobs).unwrap_err().to_string();
        assert!(text.starts_with("number of coflows of job ") && text.contains("expected at most"), "{text}");
    }
}
