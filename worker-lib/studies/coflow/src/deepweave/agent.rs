//! The policy: a network's priorities, anew whenever jobs arrive, with a search behind it if wanted.
//!
//! Between arrivals the keys of a network on top of JobSEBF follow what jobs still need; those that a search has found
//! stay as they are.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use super::lookahead::{Found, Lookahead};
use super::net::{Advice, Net, NetKind};
use super::scene::{LEAST, Scene};
use crate::policy::{Needs, Policy, Sharing, sort};
use crate::simulation::State;

/// Of a coflow whose job has not arrived.
const UNKNOWN: f64 = f64::NAN;

/// Random priorities around the network's.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Standard deviation.
    pub deviation: f64,
    /// The draws.
    pub rng: ChaCha8Rng,
}

/// A decision, for learning.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What was seen.
    pub scene: Scene,
    /// How far each coflow's priority was from the network's, `[nodes]`: the draws, or what the search did.
    pub offsets: Vec<f32>,
    /// What the search's steps say about where it should look.
    pub credits: Advice,
}

/// A policy with a network. A value is for one run.
#[derive(Clone, Debug)]
pub struct DeepWeave {
    net: Net,
    parameters: Arc<[f32]>,
    lookahead: Option<Lookahead>,
    exploration: Option<Exploration>,
    /// Decisions so far, if they are to be kept.
    record: Option<Vec<Decision>>,
    /// Jobs that had arrived at the last decision.
    arrived: usize,
    /// By coflow: what is taken off the logarithm of its job's need, or with a search the key itself.
    priorities: Vec<f64>,
    keys: Vec<f64>,
    needs: Needs,
}

impl DeepWeave {
    /// With a network and its parameters.
    ///
    /// # Panics
    /// If there are more or fewer of these than the network has.
    pub fn new(net: Net, parameters: Arc<[f32]>) -> Self {
        assert_eq!(parameters.len(), net.parameter_count(), "parameters");
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

    /// A network before any learning, whose order is that of JobSEBF: for a search without one.
    pub fn job_sebf() -> Self {
        let net = Net::new(NetKind::Node, 0);
        let parameters = vec![0.0; net.parameter_count()];
        Self::new(net, parameters.into())
    }

    /// Tries orders before it takes one.
    #[must_use]
    pub fn with_lookahead(mut self, lookahead: Lookahead) -> Self {
        self.lookahead = Some(lookahead);
        self
    }

    /// Draws priorities around the network's.
    #[must_use]
    pub fn with_exploration(mut self, exploration: Exploration) -> Self {
        self.exploration = Some(exploration);
        self
    }

    /// Keeps its decisions.
    #[must_use]
    pub fn with_record(mut self) -> Self {
        self.record = Some(Vec::new());
        self
    }

    /// The decisions that were kept.
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

    /// Fixes keys by a search, if there is one, which adds to the offsets of priorities and gives its steps' credits.
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

    /// The key of each coflow between decisions; the least comes first.
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

/// The longest way first, where all else is equal.
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
        Sharing::InOrder
    }
}
