//! Measures the steps per second of environments with random actions: for one environment, for 16 environments in one
//! thread, and for 16 environments in two threads. Gymnasium environments use Python processes instead of threads. The
//! `CPU time` column contains the number of steps of 16 environments in one thread, divided by the CPU time of this
//! process. Other programs on the machine affect this column less than the others, but it does not include the CPU time
//! of the Python processes. Without an id, measures all built-in environments. `cargo run --release -p iswitch-learn
//! --example environment_speed -- [ID...]`

use std::time::{Duration, Instant};

use iswitch_learn::env::{self, Action, ActionSpec, EnvError, Environment};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::time::{ClockId, clock_gettime};

/// Duration of each measurement in seconds.
const TIME: Duration = Duration::from_secs(3);
/// Number of environments in the second and the third measurement of each environment id.
const MANY: usize = 16;

/// Speed of environments, in steps per second of elapsed time and of CPU time.
struct Speed {
    elapsed: f64,
    cpu: f64,
}

/// Environments that all have the same id, and buffers for their steps.
struct Stepper {
    environments: Vec<Box<dyn Environment>>,
    rng: ChaCha8Rng,
    /// Continuous actions of all environments.
    values: Vec<f32>,
    /// Discrete actions of all environments.
    choices: Vec<usize>,
    observation: Vec<f32>,
}

fn main() {
    let mut ids: Vec<String> = std::env::args().skip(1).collect();
    if ids.is_empty() {
        ids = env::known_ids().into_iter().map(str::to_owned).collect();
    }
    println!("{:<28}{:>14}{:>14}{:>14}{:>14}", "steps per second", "1", "16", "CPU time", "2 threads");
    for id in ids {
        match measure_all(&id) {
            Ok([one, many, threads]) => {
                let (one, elapsed, cpu, threads) = (one.elapsed, many.elapsed, many.cpu, threads.elapsed);
                println!("{id:<28}{one:>14.0}{elapsed:>14.0}{cpu:>14.0}{threads:>14.0}");
            }
            Err(error) => println!("{id:<28}{}", error.to_string().lines().next().unwrap_or_default()),
        }
    }
}

/// Measures one environment, many in one thread, and many in two threads.
fn measure_all(id: &str) -> Result<[Speed; 3], EnvError> {
    Ok([measure(id, 1, 1)?, measure(id, MANY, 1)?, measure(id, MANY, 2)?])
}

fn measure(id: &str, count: usize, threads: usize) -> Result<Speed, EnvError> {
    /// Number of steps of each environment between two readings of the clock.
    const BATCH: usize = 100;
    let mut stepper = Stepper::new(id, count, threads)?;
    let cpu_time = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let (begin, cpu_begin, mut steps) = (Instant::now(), cpu_time(), 0);
    while begin.elapsed() < TIME {
        for _ in 0..BATCH {
            stepper.step()?;
        }
        steps += BATCH * count;
    }
    let steps = steps as f64;
    Ok(Speed { elapsed: steps / begin.elapsed().as_secs_f64(), cpu: steps / (cpu_time() - cpu_begin) })
}

impl Stepper {
    fn new(id: &str, count: usize, threads: usize) -> Result<Self, EnvError> {
        let mut environments = env::make_parallel(id, count, threads)?;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut observation = vec![0.0; environments[0].spec().observation_dim];
        for env in &mut environments {
            env.reset(&mut rng, &mut observation)?;
        }
        Ok(Self { environments, rng, values: Vec::new(), choices: vec![0; count], observation })
    }

    /// Advances each environment by one step.
    fn step(&mut self) -> Result<(), EnvError> {
        let Self { environments, rng, values, choices, observation } = self;
        let action_spec = environments[0].spec().action;
        match action_spec {
            ActionSpec::Discrete { n } => choices.fill_with(|| rng.random_range(0..n)),
            ActionSpec::Continuous { dim } => {
                values.resize(dim * environments.len(), 0.0);
                values.fill_with(|| rng.random_range(-1.0..1.0));
            }
        }
        let action = |i: usize| match action_spec {
            ActionSpec::Discrete { .. } => Action::Discrete(choices[i]),
            ActionSpec::Continuous { dim } => Action::Continuous(&values[i * dim..][..dim]),
        };
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
}
