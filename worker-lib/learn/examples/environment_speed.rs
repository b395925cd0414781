//! Measures the steps per second of environments under random actions: of one environment, and of 16 in 1 and in 2
//! threads or Python processes. `cargo run --release -p iswitch-learn --example environment_speed -- [ID...]`

use std::time::{Duration, Instant};

use iswitch_learn::env::{self, Action, ActionSpec, EnvError, Environment};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Duration of each measurement.
const TIME: Duration = Duration::from_secs(3);
const IDS: [&str; 6] = [
    "CartPole-v1",
    "gymnasium:CartPole-v1",
    "Hopper-v5",
    "gymnasium:Hopper-v5",
    "ALE/Pong-v5",
    "PongNoFrameskip-v4",
];

fn main() -> Result<(), EnvError> {
    let mut ids: Vec<String> = std::env::args().skip(1).collect();
    if ids.is_empty() {
        ids = IDS.map(str::to_owned).to_vec();
    }
    println!("{:<28}{:>14}{:>14}{:>14}", "steps per second", "1", "16", "16, 2 threads");
    for id in ids {
        let [one, many] = [steps_per_s(&id, 1, 1)?, steps_per_s(&id, 16, 1)?];
        println!("{id:<28}{one:>14.0}{many:>14.0}{:>14.0}", steps_per_s(&id, 16, 2)?);
    }
    Ok(())
}

fn steps_per_s(id: &str, count: usize, threads: usize) -> Result<f64, EnvError> {
    let mut environments = env::make_parallel(id, count, threads)?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut observation = vec![0.0; environments[0].spec().observation_dim];
    for env in &mut environments {
        env.reset(&mut rng, &mut observation)?;
    }
    let (begin, mut steps) = (Instant::now(), 0_u32);
    while begin.elapsed() < TIME {
        step_all(&mut environments, &mut rng, &mut observation)?;
        steps += count as u32;
    }
    Ok(f64::from(steps) / begin.elapsed().as_secs_f64())
}

fn step_all(
    environments: &mut [Box<dyn Environment>],
    rng: &mut ChaCha8Rng,
    observation: &mut [f32],
) -> Result<(), EnvError> {
    let (mut values, mut choices) = (Vec::new(), Vec::new());
    for env in environments.iter() {
        match env.spec().action {
            ActionSpec::Discrete { n } => choices.push(rng.random_range(0..n)),
            ActionSpec::Continuous { dim } => {
                values.push((0..dim).map(|_| rng.random_range(-1.0..1.0)).collect::<Vec<f32>>());
            }
        }
    }
    let action =
        |i: usize| choices.get(i).map_or_else(|| Action::Continuous(&values[i]), |n| Action::Discrete(*n));
    for (i, env) in environments.iter_mut().enumerate() {
        env.begin_step(action(i))?;
    }
    for (i, env) in environments.iter_mut().enumerate() {
        let step = env.finish_step(action(i), observation)?;
        if step.terminated || step.truncated {
            env.reset(rng, observation)?;
        }
    }
    Ok(())
}
