//! Policy that asks a network for new priorities whenever jobs arrive. Optionally, a search improves the resulting
//! order.
//!
//! The policy sorts coflows by keys; the coflow with the lowest key is sent first. Without a search, keys derived from
//! a network of kind `Node` change between arrivals, because they depend on the remaining need of each job. Keys found
//! by a search remain constant between arrivals.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use super::lookahead::{Found, Lookahead};
use super::net::{Advice, Net, NetKind};
use super::scene::{LEAST, Scene};
use crate::policy::{Needs, Policy, Sharing, sort};
use crate::simulation::State;

/// Value of the priority and of the key of a coflow whose job has not arrived.
const UNKNOWN: f64 = f64::NAN;

/// Exploration that draws each priority from a normal distribution whose mean is the network's priority.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Standard deviation of the distribution.
    pub deviation: f64,
    /// Random stream.
    pub rng: ChaCha8Rng,
}

/// Recorded decision, for training.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Input of the network.
    pub scene: Scene,
    /// For each coflow, the priority that was used minus the network's priority, with shape `[nodes]`. The difference
    /// is caused by exploration or by the search.
    pub offsets: Vec<f32>,
    /// Gradient of the mean relative saving per step of the search, with respect to the network's advice; empty if
    /// there is no search.
    pub credits: Advice,
}

/// Policy that orders coflows by the priorities of a network. Each simulated run needs a new instance, which holds the
/// state of the run.
#[derive(Clone, Debug)]
pub struct DeepWeave {
    net: Net,
    parameters: Arc<[f32]>,
    lookahead: Option<Lookahead>,
    exploration: Option<Exploration>,
    /// Decisions so far; `None` if decisions are not recorded.
    record: Option<Vec<Decision>>,
    /// Number of jobs that had arrived at the most recent decision.
    arrived: usize,
    /// Priority of each coflow.
    priorities: Vec<f64>,
    /// Key that the search found for each coflow; unused if the policy has no search.
    keys: Vec<f64>,
    needs: Needs,
}

impl DeepWeave {
    /// Creates the policy from a network and its parameters.
    ///
    /// # Panics
    /// Panics if `parameters` does not have the number of parameters of the network.
    pub fn new(net: Net, parameters: Arc<[f32]>) -> Self {
        assert_eq!(parameters.len(), net.parameter_count(), "number of parameters");
        Self {
            net,
            parameters,
            lookahead: None,
            exploration: None,
            record: None,
            arrived: 0,
            priorities: Vec::new(),
            keys: Vec::new(),
            needs: Needs::default(),
        }
    }

    /// Creates the policy with an untrained network, whose order is that of JobSEBF. A search without a trained network
    /// starts from this policy.
    pub fn job_sebf() -> Self {
        let net = Net::new(NetKind::Node, 0);
        let parameters = vec![0.0; net.parameter_count()];
        Self::new(net, parameters.into())
    }

    /// Adds a search, which improves the order at each decision.
    #[must_use]
    pub fn with_lookahead(mut self, lookahead: Lookahead) -> Self {
        self.lookahead = Some(lookahead);
        self
    }

    /// Adds exploration: priorities are drawn at random around those of the network.
    #[must_use]
    pub fn with_exploration(mut self, exploration: Exploration) -> Self {
        self.exploration = Some(exploration);
        self
    }

    /// Records all decisions.
    #[must_use]
    pub fn with_record(mut self) -> Self {
        self.record = Some(Vec::new());
        self
    }

    /// Returns the recorded decisions.
    pub fn into_record(self) -> Vec<Decision> {
        self.record.unwrap_or_default()
    }

    fn decide(&mut self, state: &State<'_>, arrived: usize) {
        let scene = Scene::of(state, arrived);
        let mut advice = Advice::default();
        self.net.forward(&self.parameters, &scene, &mut advice);
        let mut offsets = vec![0.0; scene.nodes()];
        if let Some(Exploration { deviation, rng }) = &mut self.exploration {
            offsets.iter_mut().for_each(|it| *it = StandardNormal.sample(rng));
            offsets.iter_mut().for_each(|it: &mut f32| *it *= *deviation as f32);
        }
        for (node, stage) in scene.stages.iter().enumerate() {
            self.priorities[*stage] = f64::from(advice.priorities[node] + offsets[node]);
        }
        let credits = self.search(state, &scene, (arrived - self.arrived, &advice), &mut offsets);
        self.arrived = arrived;
        if let Some(record) = &mut self.record {
            record.push(Decision { scene, offsets, credits });
        }
    }

    /// If the policy has a search, runs it to determine the keys, adds the resulting changes of priorities to
    /// `offsets`, and returns the gradient of the mean relative saving of a step with respect to the advice. `new` is
    /// the number of jobs that have arrived since the previous decision.
    fn search(
        &mut self,
        state: &State<'_>,
        scene: &Scene,
        (new, advice): (usize, &Advice),
        offsets: &mut [f32],
    ) -> Advice {
        let Some(lookahead) = &mut self.lookahead else { return Advice::default() };
        let is_residual = self.net.is_residual();
        let key = |(node, stage): (usize, &usize)| {
            let base = if is_residual { (scene.needs[scene.job_of[node]] + LEAST).ln() } else { 0.0 };
            base - self.priorities[*stage] - tie(state.stages[*stage].path)
        };
        let proposed: Vec<f64> = scene.stages.iter().enumerate().map(key).collect();
        let followed = scene.stages.iter().zip(&proposed);
        let followed = followed.map(|(stage, new)| or(self.keys[*stage], *new)).collect();
        let Found { keys, moved, aims } =
            lookahead.improve((state, scene), (new, advice), proposed.clone(), followed);
        for (node, stage) in scene.stages.iter().enumerate() {
            self.keys[*stage] = keys[node];
            offsets[node] += (proposed[node] - keys[node]) as f32;
        }
        Advice { priorities: Vec::new(), moved, aims }
    }

    /// Returns the current sort key of a coflow; the coflow with the lowest key is sent first.
    fn key(&self, state: &State<'_>, stage: usize, need: f64) -> (f64, f64, usize) {
        let path = state.stages[stage].path;
        let key = match (&self.lookahead, self.net.is_residual()) {
            (Some(_), _) => self.keys[stage],
            (None, true) => (need + LEAST).ln() - self.priorities[stage],
            (None, false) => -self.priorities[stage],
        };
        (key, -path, stage)
    }
}

/// Returns a small term that breaks ties between coflows in favour of the one with the longest path.
fn tie(path: f64) -> f64 {
    1e-6 * path / (1.0 + path)
}

fn or(known: f64, new: f64) -> f64 {
    if known.is_nan() { new } else { known }
}

impl Policy for DeepWeave {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        self.priorities.resize(state.stages.len(), UNKNOWN);
        self.keys.resize(state.stages.len(), UNKNOWN);
        let new = state.jobs[self.arrived..].iter().take_while(|job| job.arrival <= state.time).count();
        if new > 0 {
            self.decide(state, self.arrived + new);
        }
        let mut needs = std::mem::take(&mut self.needs);
        needs.forget();
        ready.sort_unstable();
        let key = |stage: &usize| self.key(state, *stage, needs.of(state, state.stages[*stage].job));
        let mut keyed: Vec<_> = ready.iter().map(key).collect();
        self.needs = needs;
        sort(&mut keyed);
        ready.clear();
        ready.extend(keyed.into_iter().map(|(_, _, stage)| stage));
        Sharing::Madd
    }
}
