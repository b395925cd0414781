//! The patent's placer. Jobs start in order of arrival. The GPUs of a job are picked one after another (steps A1 to A5
//! of the patent in training, C1 to C5 in use).

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::patent_net::PatentNet;
use super::replay::Sample;
use super::score::{choose, log_probability};
use crate::policy::Placer;
use crate::state::State;

/// Length of a week in seconds.
const WEEK: f64 = 7.0 * 86_400.0;

/// Placer with the patent's policy network. Each simulated run needs a new instance.
#[derive(Clone, Debug)]
pub struct PatentPlacer {
    net: PatentNet,
    parameters: Arc<[f32]>,
    random: Option<(ChaCha8Rng, Vec<Sample>)>,
}

impl PatentPlacer {
    /// Creates a placer from the networks and their parameters.
    pub fn new(net: PatentNet, parameters: Arc<[f32]>) -> Self {
        Self { net, parameters, random: None }
    }

    /// Adds exploration: each GPU is drawn according to the policy's probabilities, and a sample is recorded for each
    /// pick. The patent picks the most probable GPU during training as well, but then the policy would never try other
    /// GPUs.
    #[must_use]
    pub fn with_exploration(mut self, rng: ChaCha8Rng) -> Self {
        self.random = Some((rng, Vec::new()));
        self
    }

    /// Returns the samples of all picks, without rewards; empty without exploration.
    pub fn into_samples(self) -> Vec<Sample> {
        self.random.map(|(_, samples)| samples).unwrap_or_default()
    }
}

impl Placer for PatentPlacer {
    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>) {
        let mut taken: Vec<bool> = state.unavailable().collect();
        let (asked, weeks) = (size as u32, (state.job(job).duration() / WEEK) as f32);
        for _ in 0..size {
            let mut row = Vec::with_capacity(self.net.inputs());
            self.net.push_state(asked, weeks, taken.iter().copied(), &mut row);
            let logits = self.net.policy(&self.parameters, &row);
            // The mask excludes GPUs that are taken or failed.
            let free: Vec<usize> = (0..taken.len()).filter(|gpu| !taken[*gpu]).collect();
            let logits: Vec<f64> = free.iter().map(|gpu| f64::from(logits[*gpu])).collect();
            let rng = self.random.as_mut().map(|(rng, _)| rng);
            let at = choose(&logits, 1, rng, |a, b| a.cmp(&b))[0];
            if let Some((_, samples)) = &mut self.random {
                let log_probability = log_probability(&logits, at) as f32;
                let action = free[at] as u32;
                samples.push(Sample::new((asked, weeks), &taken, (action, log_probability)));
            }
            taken[free[at]] = true;
            picks.push(free[at]);
        }
    }
}
