use super::*;
use crate::env::{ActionSpec, ImageShape};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

const HOW: Prioritisation = Prioritisation { alpha: 0.6, beta: 0.4, epsilon: 1e-6 };

fn push(replay: &mut Replay, number: u16) {
    let x = f32::from(number);
    replay.push(Transition {
        observation: &[x, -x],
        action: &[x + 0.5],
        reward: 2.0 * x,
        next_observation: &[x + 1.0, -x - 1.0],
        terminated: number.is_multiple_of(3),
        episode_ends: number.is_multiple_of(3),
    });
}

proptest! {
    #[test]
    fn sampled_rows_are_complete_transitions_still_in_the_buffer(
        (capacity, count) in (1_usize..20, 1_u16..60),
        prioritised in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut replay = Replay::new(capacity, 2, 1, prioritised.then_some(HOW)).unwrap();
        (0..count).for_each(|number| push(&mut replay, number));
        prop_assert_eq!(replay.len(), capacity.min(usize::from(count)));
        let mut batch = Batch::default();
        replay.sample(32, &mut ChaCha8Rng::seed_from_u64(seed), &mut batch);
        for i in 0..32 {
            let x = batch.observations[2 * i];
            prop_assert!(x >= f32::from(count) - capacity as f32 && x < f32::from(count));
            let row = [
                batch.observations[2 * i + 1],
                batch.actions[i],
                batch.rewards[i],
                batch.next_observations[2 * i],
                batch.goes_on[i],
            ];
            let goes_on = if (x as u16).is_multiple_of(3) { 0.0 } else { 1.0 };
            prop_assert_eq!(row, [-x, x + 0.5, 2.0 * x, x + 1.0, goes_on]);
        }
    }
}

#[test]
fn large_errors_are_sampled_more_often_with_smaller_weights() {
    let how = Prioritisation { alpha: 1.0, beta: 1.0, epsilon: 0.0 };
    let mut replay = Replay::new(4, 2, 1, Some(how)).unwrap();
    (0..4).for_each(|number| push(&mut replay, number));
    replay.update_priorities(&[0, 1, 2, 3], &[1.0, 1.0, 1.0, 5.0]);
    let (mut batch, mut rng) = (Batch::default(), ChaCha8Rng::seed_from_u64(1));
    let mut drawn = [0; 4];
    for _ in 0..1000 {
        replay.sample(8, &mut rng, &mut batch);
        batch.indices.iter().for_each(|index| drawn[*index] += 1);
        for (index, weight) in batch.indices.iter().zip(&batch.weights) {
            let want = if *index == 3 { 0.2 } else { 1.0 };
            assert!((weight - want).abs() < 1e-5, "{index}: {weight}");
        }
    }
    // On average, five of eight draws return transition 3, and one of eight returns each of the other three
    // transitions.
    assert_eq!(drawn.iter().sum::<usize>(), 8000);
    assert!((4900..5100).contains(&drawn[3]), "{drawn:?}");
}

#[test]
fn a_replay_buffer_of_capacity_zero_is_refused() {
    let error = Replay::new(0, 1, 1, None).unwrap_err().to_string();
    assert_eq!(error, "the capacity of the replay buffer is 0 transitions, expected at least 1");
}

const SHAPE: ImageShape = ImageShape { height: 2, width: 1, channels: 3 };

/// Returns the stack whose newest frame is `newest`, in an episode that begins with frame `start`. The values are
/// ordered by pixel, and within each pixel from the oldest frame to the newest.
fn stack(start: u8, newest: u8) -> Vec<f32> {
    let frame = |back: u8| newest.saturating_sub(back).max(start);
    let pixels = [0, 100].map(|offset| [2, 1, 0].map(|back| f32::from(frame(back) + offset) / 255.0));
    pixels.concat()
}

fn image_replay(capacity: usize, prioritised: bool) -> Replay {
    let spec = EnvSpec {
        id: "test".into(),
        observation_dim: 6,
        action: ActionSpec::Discrete { n: 2 },
        image: Some(SHAPE),
        episode_steps_max: 100,
        solved_return: 0.0,
    };
    Replay::for_environment(capacity, &spec, 1, prioritised.then_some(HOW)).unwrap()
}

proptest! {
    /// Frames are numbered. Each transition's reward is the number of its episode's first frame, and its action is the
    /// number of its own frame.
    #[test]
    fn frame_stacks_do_not_cross_episodes(
        lengths in prop::collection::vec(1_u8..9, 1..8),
        capacity in 8_usize..40,
        prioritised in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut replay = image_replay(capacity, prioritised);
        let mut first = 0;
        for length in &lengths {
            for step in 0..*length {
                let at = first + step;
                replay.push(Transition {
                    observation: &stack(first, at),
                    action: &[f32::from(at)],
                    reward: f32::from(first),
                    next_observation: &stack(first, at + 1),
                    terminated: step % 2 == 0,
                    episode_ends: step + 1 == *length,
                });
            }
            first += length + 1;
        }
        let mut batch = Batch::default();
        replay.sample(32, &mut ChaCha8Rng::seed_from_u64(seed), &mut batch);
        for i in 0..32 {
            let (start, at) = (batch.rewards[i] as u8, batch.actions[i] as u8);
            prop_assert_eq!(&batch.observations[6 * i..6 * i + 6], &stack(start, at)[..]);
            prop_assert_eq!(&batch.next_observations[6 * i..6 * i + 6], &stack(start, at + 1)[..]);
            let goes_on = if (at - start).is_multiple_of(2) { 0.0 } else { 1.0 };
            prop_assert_eq!(batch.goes_on[i], goes_on);
        }
    }
}
