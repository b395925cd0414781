//! Tests of environments that are distributed over several processes.

use super::*;
use crate::env::{Environment, make_parallel};

/// Steps five environments together, with resets, and returns the outcomes and observations that a caller receives.
fn trajectories(id: &str, threads: usize) -> Option<Vec<Seen>> {
    let mut all: Vec<Box<dyn Environment>> = available(make_parallel(id, 5, threads))?;
    let mut rngs: Vec<_> = (0..5).map(ChaCha8Rng::seed_from_u64).collect();
    let mut observations = vec![vec![0.0; all[0].spec().observation_dim]; 5];
    let mut seen = Vec::new();
    let bits = |observation: &[f32]| observation.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for ((env, rng), observation) in all.iter_mut().zip(&mut rngs).zip(&mut observations) {
        env.reset(rng, observation).unwrap();
        seen.push((None, bits(observation)));
    }
    for t in 0..60_usize {
        let action = |i: usize| Action::Discrete((t * t / 5 + i) % 2);
        all.iter_mut().enumerate().for_each(|(i, env)| env.begin_step(action(i)).unwrap());
        for (i, env) in all.iter_mut().enumerate() {
            let step = env.finish_step(action(i), &mut observations[i]).unwrap();
            seen.push((Some(step), bits(&observations[i])));
            if step.terminated {
                env.reset(&mut rngs[i], &mut observations[i]).unwrap();
                seen.push((None, bits(&observations[i])));
            }
        }
    }
    Some(seen)
}

#[test]
fn the_results_do_not_depend_on_the_number_of_processes() {
    for id in ["gymnasium:CartPole-v1", "envpool:CartPole-v1"] {
        let Some(expected) = trajectories(id, 1) else { continue };
        assert!(expected.iter().filter(|(step, _)| step.is_none()).count() > 5, "expected ends of episodes");
        for threads in [2, 3, 9] {
            assert_eq!(trajectories(id, threads).unwrap(), expected, "{id} with {threads}");
        }
    }
}

#[test]
fn an_error_of_one_of_several_processes_is_reported_once() {
    let error = make_parallel("gymnasium:Nothing-v0", 3, 3).err().expect("there is no such environment");
    assert!(error.to_string().starts_with("gymnasium:Nothing-v0: "), "{error}");
}
