//! Processes of a run on this machine: the learner runs on one core, all other processes on another core.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use iswitch_harness::binaries;
use iswitch_harness::ports::free_ports;
use iswitch_harness::process::{self, Process, Signal};

/// Time within which a process must start or end.
const SOON: Duration = Duration::from_secs(30);

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the environment.
    pub env: String,
    /// Number of environment steps.
    pub steps: u64,
    /// Rate of each actor's environment, in steps per second.
    pub rate: f64,
    /// Number of actors.
    pub actors: usize,
    /// Seed of the random number generators.
    pub seed: u64,
    /// Additional arguments of the learner.
    pub learner: Vec<String>,
}

/// Results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Time from the learner's start to the end of its training, in seconds.
    pub seconds: f64,
    /// Number of gradients that the learner computed.
    pub iterations: f64,
    /// Part of `seconds` during which the learner waited for experience.
    pub waited_s: f64,
    /// Part of `waited_s` that elapsed before the first gradient.
    pub waited_first_s: f64,
    /// Mean return of the last 100 episodes.
    pub last_return: f64,
}

impl Outcome {
    /// Returns the number of gradients per second, not counting the time before the first gradient.
    pub fn gradients_per_s(&self) -> f64 {
        self.iterations / self.learned_s()
    }

    /// Returns the fraction of the time since the first gradient in which the learner had work to do.
    pub fn busy(&self) -> f64 {
        1.0 - (self.waited_s - self.waited_first_s) / self.learned_s()
    }

    fn learned_s(&self) -> f64 {
        self.seconds - self.waited_first_s
    }
}

/// Maximum number of actors in one process.
const PER_PROCESS: usize = 64;

impl Run {
    /// Runs the processes, and leaves their files in `directory`.
    ///
    /// # Panics
    /// Panics if a process fails.
    pub fn measure(&self, directory: &Path) -> Outcome {
        let [policies, shard, cell] = free_ports().map(|port| format!("127.0.0.1:{port}"));
        let spawn = |core: usize, name: &str, arguments: &[&str]| {
            let mut command = process::command("taskset");
            command.args(["-c", &core.to_string()]).arg(binaries::iswitch()).args(arguments);
            Process::spawn(name, &mut command)
        };
        let (steps, seed) = (self.steps.to_string(), self.seed.to_string());
        let (out, replay) = (directory.display().to_string(), format!("http://{shard}"));
        let mut arguments = vec!["learner", "dqn", "--json", "--quiet", "--linger-s", "1", "--force"];
        arguments.extend(["--env", &self.env, "--steps", &steps, "--seed", &seed]);
        arguments.extend(["--replay", &replay, "--publish", &policies, "--out", &out]);
        arguments.extend(self.learner.iter().map(String::as_str));
        let learner = spawn(0, "the learner", &arguments);
        let mut services = vec![
            spawn(1, "the shard", &["replay", "--models", &policies, "--listen", &shard]),
            spawn(1, "the cell", &["cell", "--upstream", &policies, "--listen", &cell]),
        ];
        let (models, rate) = (format!("{cell},{policies}"), self.rate.to_string());
        for first in (0..self.actors).step_by(PER_PROCESS) {
            let count = PER_PROCESS.min(self.actors - first).to_string();
            let first = first.to_string();
            let mut arguments = vec!["actors", "--models", &models, "--quiet", "--steps-per-second", &rate];
            arguments.extend(["--first", &first, "--actors", &count]);
            services.push(spawn(1, "actors", &arguments));
        }
        // Timeout of a run: the time that a single actor would need in real time, plus a margin.
        let patience = Duration::from_secs_f64(self.steps as f64 / self.rate) + 20 * SOON;
        let printed = learner.wait_success(patience);
        let result: Value = serde_json::from_str(&printed).expect(&printed);
        for service in services {
            // The exit status is ignored, because the actors have already exited by themselves.
            let _ = service.stop(Signal::TERM, SOON);
        }
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        Outcome {
            seconds: number(&result["seconds"]),
            iterations: number(&result["iterations"]),
            waited_s: number(&result["replay"]["waited_s"]),
            waited_first_s: number(&result["replay"]["waited_first_s"]),
            last_return: number(&result["final_return"]),
        }
    }
}
