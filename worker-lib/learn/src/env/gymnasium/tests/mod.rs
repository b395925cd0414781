//! Tests with the real Gymnasium, if it is installed, and with processes that misbehave.

mod atari;
mod envpool;
mod equality;
mod failures;
mod parallel;
mod protocol;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::{GymnasiumEnvironment, GymnasiumOptions, Package};
use crate::env::tests::available;
use crate::env::{Action, ActionSpec, Environment as _, Step};

/// An environment, with the random generator for its resets.
struct Player {
    env: GymnasiumEnvironment,
    rng: ChaCha8Rng,
    observation: Vec<f32>,
    acted: usize,
}

/// The outcome of a step, or `None` for a reset, and the bit patterns of the observation.
type Seen = (Option<Step>, Vec<u32>);

impl Player {
    fn new(env: GymnasiumEnvironment, seed: u64) -> Self {
        let observation = vec![0.0; env.spec().observation_dim];
        Self { env, rng: ChaCha8Rng::seed_from_u64(seed), observation, acted: 0 }
    }

    fn seen(&self, step: Option<Step>) -> Seen {
        (step, self.observation.iter().map(|x| x.to_bits()).collect())
    }

    fn reset(&mut self) -> Seen {
        self.env.reset(&mut self.rng, &mut self.observation).unwrap();
        self.seen(None)
    }

    /// Calls `act` with the player's next action. All players take the same sequence of actions.
    fn with_action<T>(&self, act: impl FnOnce(Action<'_>) -> T) -> T {
        match self.env.spec().action {
            ActionSpec::Discrete { n } => act(Action::Discrete(self.acted * self.acted / 7 % n)),
            ActionSpec::Continuous { dim } => {
                let values: Vec<_> = (0..dim).map(|i| ((self.acted * (i + 3)) as f32).sin()).collect();
                act(Action::Continuous(&values))
            }
        }
    }

    fn begin(&mut self) {
        let vector = std::sync::Arc::clone(&self.env.vector);
        let index = self.env.index;
        self.with_action(|action| vector.lock().unwrap().begin_step(index, action)).unwrap();
    }

    fn finish(&mut self) -> Seen {
        let vector = std::sync::Arc::clone(&self.env.vector);
        let (index, mut observation) = (self.env.index, std::mem::take(&mut self.observation));
        let finish = |action: Action<'_>| vector.lock().unwrap().finish_step(index, action, &mut observation);
        let step = self.with_action(finish).unwrap();
        self.observation = observation;
        self.acted += 1;
        self.seen(Some(step))
    }

    fn step(&mut self) -> Seen {
        self.begin();
        self.finish()
    }

    /// Takes `steps` steps, with a reset at the start and after each episode.
    fn play(&mut self, steps: usize) -> Vec<Seen> {
        let mut all = vec![self.reset()];
        for _ in 0..steps {
            all.push(self.step());
            if all.last().is_some_and(|(step, _)| step.is_some_and(|step| step.terminated || step.truncated))
            {
                all.push(self.reset());
            }
        }
        all
    }

    fn kill_process(&self) {
        let mut vector = self.env.vector.lock().unwrap();
        vector.child.as_mut().unwrap().process().kill().unwrap();
    }
}

/// Creates players that share one process, with seeds from 0. Returns `None` if a prerequisite is not installed on this
/// machine.
fn players(id: &str, count: usize) -> Option<Vec<Player>> {
    players_with(id, count, &GymnasiumOptions::default())
}

fn players_with(id: &str, count: usize, options: &GymnasiumOptions) -> Option<Vec<Player>> {
    let environments = available(GymnasiumEnvironment::vector(id, count, options))?;
    Some(environments.into_iter().zip(0..).map(|(env, seed)| Player::new(env, seed)).collect())
}

fn player(id: &str) -> Option<Player> {
    Some(players(id, 1)?.remove(0))
}

/// Returns the output of a Python program.
fn python(program: &str) -> String {
    let output = Command::new(GymnasiumOptions::default().python).args(["-c", program]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Writes an executable shell script that stands in for the Python interpreter.
fn script(directory: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = directory.join("python3");
    // Another process writes the file. If this process had it open for writing, a process that another test starts
    // could inherit the descriptor, and the script could not be executed.
    let mut written = Command::new("sh");
    written.args(["-c", "cat > \"$0\" && chmod 755 \"$0\"", &path.display().to_string()]);
    feed(&mut written, &format!("#!/bin/sh\n{text}\n"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o111, 0o111);
    path
}

fn feed(command: &mut Command, text: &str) {
    use std::io::Write as _;
    let mut process = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(process.wait().unwrap().success());
}

fn options(python: PathBuf, answer_timeout: Duration) -> GymnasiumOptions {
    GymnasiumOptions { python, answer_timeout, ..GymnasiumOptions::default() }
}
