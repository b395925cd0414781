//! Test data for programs that run the exported policy: observations, and the policy's actions for them.

use iswitch_learn::algorithms::evaluate::evaluate;
use iswitch_learn::algorithms::policy_graph::{PolicyGraph, channels_first};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::Policy;
use iswitch_learn::env::{EnvSpec, Environment};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use crate::policy::{ActionTransform, ExportedPolicy};
use crate::tensors::{NamedTensor, Values, to_bytes};

/// Standard deviation of the added noise, as a multiple of that of the observations.
const NOISE: f64 = 3.0;

/// Returns a safetensors file with `rows` observations and actions. The start states are derived from `seed`.
///
/// # Errors
/// Fails if the environment fails.
pub(crate) fn file(
    exported: &ExportedPolicy,
    policy: Box<dyn Policy>,
    mut env: Box<dyn Environment>,
    rows: usize,
    seed: u64,
) -> anyhow::Result<Vec<u8>> {
    let spec = env.spec().clone();
    let mut recorder =
        Recorder { policy, limit: rows * spec.observation_dim, seen: vec![], starts: vec![], begins: true };
    let mut episode = seed;
    while recorder.seen.len() < recorder.limit {
        evaluate(&mut recorder, env.as_mut(), 1, episode, false)?;
        episode = episode.wrapping_add(1);
    }
    let Recorder { mut policy, seen: mut observations, starts, .. } = recorder;
    if spec.image.is_none() {
        add_noise(&mut observations, &spec, seed);
    }
    let space = env.action_space();
    let mut action = vec![0.0; spec.action.stored_dim()];
    let (mut actions, mut scores) = (Vec::new(), Vec::new());
    for (observation, begins) in observations.chunks_exact(spec.observation_dim).zip(&starts) {
        if *begins {
            policy.begin_episode();
        }
        scores.extend_from_slice(policy.scores(observation));
        policy.act(observation, None, &mut action);
        actions.extend(space.to_units(spec.to_env(&action))?);
    }
    // A policy with convolutions expects the channels of an image as the first dimension.
    if let (Some(image), [_, _, _]) = (spec.image, &exported.observation_shape[..]) {
        observations = channels_first(&observations, image);
    }
    let actions = match exported.action {
        ActionTransform::Discrete { .. } => {
            Values::I64(actions.iter().map(|action| *action as i64).collect())
        }
        ActionTransform::Continuous { .. } => {
            Values::F32(actions.iter().map(|action| *action as f32).collect())
        }
    };
    let action_shape = match exported.action {
        ActionTransform::Discrete { .. } => vec![rows],
        ActionTransform::Continuous { .. } => vec![rows, action.len()],
    };
    let shape = [&[rows], &exported.observation_shape[..]].concat();
    let mut tensors = vec![
        NamedTensor { name: "observation".to_owned(), shape, values: Values::F32(observations) },
        NamedTensor { name: "action".to_owned(), shape: action_shape, values: actions },
    ];
    if let (Some(name), ActionTransform::Discrete { n, .. }) = (exported.scores(), &exported.action) {
        let (shape, values) = (vec![rows, *n], Values::F32(scores));
        tensors.push(NamedTensor { name: name.to_owned(), shape, values });
    }
    if exported.graph.memory.is_some() {
        let (shape, values) = (vec![rows], Values::Bool(starts));
        tensors.push(NamedTensor { name: "start".to_owned(), shape, values });
    }
    to_bytes(&tensors, &exported.facts())
}

/// Adds noise to the second half of the observations, so that they differ from those seen in training.
fn add_noise(observations: &mut [f32], spec: &EnvSpec, seed: u64) {
    let dim = spec.observation_dim;
    let rows = observations.len() / dim;
    let deviation = |element: usize| {
        let values = || observations[element..].iter().step_by(dim).map(|x| f64::from(*x));
        let mean = values().sum::<f64>() / rows as f64;
        (values().map(|x| (x - mean).powi(2)).sum::<f64>() / rows as f64).sqrt()
    };
    let deviations: Vec<_> = (0..dim).map(deviation).collect();
    let mut rng = stream(seed, Purpose::Evaluation, 1);
    for row in observations.chunks_exact_mut(dim).skip(rows / 2) {
        for (x, deviation) in row.iter_mut().zip(&deviations) {
            let noise: f64 = StandardNormal.sample(&mut rng);
            *x += (NOISE * deviation * noise) as f32;
        }
    }
}

/// Policy that acts as another policy does, and records the first observations that it receives.
struct Recorder {
    policy: Box<dyn Policy>,
    /// Maximum number of floats to record.
    limit: usize,
    seen: Vec<f32>,
    /// For each recorded observation, whether it begins an episode.
    starts: Vec<bool>,
    /// Whether the next observation begins an episode.
    begins: bool,
}

impl Policy for Recorder {
    fn act(&mut self, observation: &[f32], rng: Option<&mut ChaCha8Rng>, action: &mut [f32]) {
        if self.seen.len() < self.limit {
            self.seen.extend_from_slice(observation);
            self.starts.push(std::mem::take(&mut self.begins));
        }
        self.policy.act(observation, rng, action);
    }

    fn begin_episode(&mut self) {
        self.begins = true;
        self.policy.begin_episode();
    }

    fn scores(&mut self, observation: &[f32]) -> &[f32] {
        self.policy.scores(observation)
    }

    fn graph(&self) -> PolicyGraph {
        self.policy.graph()
    }
}
