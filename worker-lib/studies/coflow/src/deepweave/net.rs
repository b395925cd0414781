//! Networks that give coflows priorities.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::node_net::NodeNet;
use super::paper_net::PaperNet;
use super::scene::Scene;
use crate::workload::Job;
use iswitch_learn::algorithms::actor_critic::NamedTensor;
use iswitch_study::StudyError;

/// Which network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum NetKind {
    /// A head for each coflow, on top of JobSEBF: of any number of coflows.
    Node,
    /// The paper's: all coflows of a job at once, up to a greatest number.
    Paper,
}

/// What a network says of the nodes of a scene, or the loss gradient by that: `[nodes]` each.
#[derive(Clone, Debug, Default)]
pub struct Advice {
    /// The highest is first.
    pub priorities: Vec<f32>,
    /// A search moves a node in proportion to the exponential of this.
    pub moved: Vec<f32>,
    /// And puts what it moves beside a node in proportion to the exponential of this.
    pub aims: Vec<f32>,
}

/// A network; its parameters are the caller's.
#[derive(Clone, Debug)]
pub enum Net {
    /// A head for each coflow.
    Node(Box<NodeNet>),
    /// The paper's.
    Paper(Box<PaperNet>),
}

impl Net {
    /// Of a kind; the paper's for jobs of up to `coflows_max` coflows.
    pub fn new(kind: NetKind, coflows_max: usize) -> Self {
        match kind {
            NetKind::Node => Self::Node(Box::new(NodeNet::new())),
            NetKind::Paper => Self::Paper(Box::new(PaperNet::new(coflows_max))),
        }
    }

    /// Floats in its parameters.
    pub fn parameter_count(&self) -> usize {
        match self {
            Self::Node(net) => net.parameter_count(),
            Self::Paper(net) => net.parameter_count(),
        }
    }

    /// Random ones, with which a [`NetKind::Node`] does as JobSEBF does.
    pub fn initial_parameters(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        match self {
            Self::Node(net) => net.initial_parameters(rng),
            Self::Paper(net) => net.initial_parameters(rng),
        }
    }

    /// Names and places of its parameters.
    pub fn tensors(&self) -> Vec<NamedTensor> {
        match self {
            Self::Node(net) => net.tensors(),
            Self::Paper(net) => net.tensors(),
        }
    }

    /// Whether priorities are on top of JobSEBF's: then the key of a coflow, of which the least is first, is the
    /// logarithm of what its job needs, less its priority; otherwise less its priority alone.
    pub fn is_residual(&self) -> bool {
        matches!(self, Self::Node(_))
    }

    /// Whether it has room for these jobs.
    ///
    /// # Errors
    /// If one has more coflows.
    pub fn check(&self, jobs: &[Job]) -> Result<(), StudyError> {
        let Self::Paper(net) = self else { return Ok(()) };
        let most = net.coflows_max();
        match jobs.iter().position(|job| job.coflows().len() > most) {
            None => Ok(()),
            Some(job) => {
                let (field, count) = (format!("coflows of job {job}"), jobs[job].coflows().len());
                Err(StudyError::field(
                    field,
                    count,
                    format!("at most {most}, for which the network was made"),
                ))
            }
        }
    }

    /// Overwrites `advice`. The paper's network says nothing about a search: all is 0.
    ///
    /// # Panics
    /// If it has no room for a job; see [`Self::check`].
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

    /// After [`Self::forward`]: adds to `gradient` for the loss gradient `deltas` by the advice; what is empty there is
    /// 0.
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

    /// The gradient against differences of a sum of priorities with random weights.
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
    fn gradients_are_those_of_the_priorities() {
        check_gradient(NetKind::Node);
        check_gradient(NetKind::Paper);
    }

    #[test]
    fn a_node_net_begins_as_job_sebf() {
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
    fn jobs_beyond_the_papers_size_are_named() {
        let jobs = jobs(1, 10, 10.0);
        let most = jobs.iter().map(|job| job.coflows().len()).max().unwrap();
        assert!(Net::new(NetKind::Paper, most).check(&jobs).is_ok());
        let text = Net::new(NetKind::Paper, most - 1).check(&jobs).unwrap_err().to_string();
        assert!(text.starts_with("coflows of job ") && text.contains("expected at most"), "{text}");
    }
}
