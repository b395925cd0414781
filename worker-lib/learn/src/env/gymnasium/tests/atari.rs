//! Tests of the preprocessing of Atari games.

use super::*;
use crate::nn::{Activation, Image, Network};

const PIXELS: usize = 84 * 84;

#[test]
fn pong_has_the_preprocessing_of_the_paper() {
    for id in ["ALE/Pong-v5", "PongNoFrameskip-v4"] {
        let Some(mut player) = player(id) else { return };
        let spec = player.env.spec().clone();
        let image = Image { height: 84, width: 84, channels: 4 };
        assert_eq!((spec.image, spec.observation_dim), (Some(image), 4 * PIXELS));
        assert_eq!((spec.action, spec.episode_steps_max), (ActionSpec::Discrete { n: 6 }, 27_000));
        let relu = Activation::Relu;
        let network = Network::image(image)
            .convolution(32, 8, 4, relu)
            .convolution(64, 4, 2, relu)
            .convolution(64, 3, 1, relu)
            .dense(512, relu)
            .dense(6, Activation::Identity);
        assert_eq!(network.parameter_count(), 1_687_206);

        player.reset();
        let channel =
            |player: &Player, c: usize| player.observation.iter().skip(c).step_by(4).copied().collect();
        let first: Vec<Vec<f32>> = (0..4).map(|c| channel(&player, c)).collect();
        assert!(
            first.iter().all(|frame| *frame == first[0]),
            "an episode should start with four copies of one frame"
        );
        assert!(first[0].iter().all(|x| (0.0..=255.0).contains(x) && x.fract() == 0.0));
        assert!(first[0].iter().any(|x| *x > 100.0), "the screen should not be empty");
        let mut changed = 0;
        for _ in 0..40 {
            let before: Vec<Vec<f32>> = (1..4).map(|c| channel(&player, c)).collect();
            player.step();
            let after: Vec<Vec<f32>> = (0..4).map(|c| channel(&player, c)).collect();
            assert_eq!(after[..3], before[..]);
            changed += usize::from(after[3] != after[2]);
        }
        assert!(changed > 20, "{changed}");
    }
}

/// Python program that runs Gymnasium's own wrappers with a given seed. For each step, it prints the reward and a
/// weighted sum of all pixels of the observation.
const REFERENCE: &str = "
import gymnasium, ale_py, numpy
gymnasium.register_envs(ale_py)
env = gymnasium.make('ID', frameskip=1)
env = gymnasium.wrappers.AtariPreprocessing(env)
class Fire(gymnasium.Wrapper):
    def reset(self, **arguments):
        self.env.reset(**arguments)
        return self.env.step(1)[0], {}
env = gymnasium.wrappers.FrameStackObservation(Fire(env), 4)
weigh = lambda frames: int((frames.astype(numpy.int64) * [[[1]], [[3]], [[5]], [[7]]]).sum())
for seed in [SEEDS]:
    print(weigh(env.reset(seed=seed)[0]), 0.0)
    for t in range(120):
        frames, reward, *_ = env.step(t * t // 7 % 6)
        print(weigh(frames), float(reward))
";

#[test]
fn atari_trajectories_match_the_gymnasium_wrappers() {
    use rand::Rng as _;
    for id in ["ALE/Pong-v5", "PongNoFrameskip-v4", "QbertNoFrameskip-v4"] {
        let Some(mut player) = player(id) else { return };
        let mut rng = player.rng.clone();
        let seeds = [0; 3].map(|_| (rng.next_u32() >> 1).to_string()).join(",");
        let reference = python(&REFERENCE.replace("SEEDS", &seeds).replace("ID", id));
        let mut rewards = 0;
        for (i, line) in reference.lines().enumerate() {
            let reward = if i % 121 == 0 {
                player.acted = 0;
                player.reset();
                0.0
            } else {
                player.step().0.unwrap().reward
            };
            let weights = [1.0, 3.0, 5.0, 7.0].into_iter().cycle();
            let weight: f64 = player.observation.iter().zip(weights).map(|(x, w)| f64::from(*x) * w).sum();
            assert_eq!(line, format!("{weight} {reward:?}"), "{id} line {i}");
            rewards += usize::from(reward != 0.0);
        }
        assert!(rewards > 0, "{id}");
    }
}

#[test]
fn a_lost_life_is_reported_and_the_episode_continues() {
    let Some(mut player) = player("ALE/Breakout-v5") else { return };
    player.reset();
    let (mut lives, mut steps) = (5, 0);
    loop {
        // FIRE serves a new ball, and the paddle never catches it.
        let step = player.env.step(Action::Discrete(1), &mut player.observation).unwrap();
        steps += 1;
        assert!(steps < 3000);
        lives -= usize::from(step.life_lost);
        if step.terminated {
            break;
        }
        assert!(lives > 0);
    }
    assert_eq!(lives, 0);
}
