//! What is trained to compare methods: small tasks that a machine of two cores learns in minutes.

use std::fmt;

/// One task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// As on the command line.
    pub algorithm: &'static str,
    /// The environment.
    pub env: &'static str,
    /// Mean return of the last 100 episodes that counts as learnt.
    pub threshold: f64,
}

/// The four algorithms.
pub const TASKS: [Task; 4] = [
    Task { algorithm: "a2c", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "dqn", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "ppo", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "ddpg", env: "Pendulum-v1", threshold: -200.0 },
];

/// How workers come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Value of `--aggregator`; `local` is one process with the whole batch.
    pub aggregator: &'static str,
    /// Workers do not wait.
    pub is_async: bool,
}

impl Method {
    /// The two without waiting, the server first.
    pub const ASYNCHRONOUS: [Self; 2] =
        [Self { aggregator: "ps", is_async: true }, Self { aggregator: "switch", is_async: true }];

    /// Those with waiting, one process first.
    pub const SYNCHRONOUS: [Self; 4] = [
        Self { aggregator: "local", is_async: false },
        Self { aggregator: "switch", is_async: false },
        Self { aggregator: "ps", is_async: false },
        Self { aggregator: "ring", is_async: false },
    ];
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.aggregator {
            "local" => "one process",
            "ps" => "parameter server",
            other => other,
        })?;
        f.write_str(if self.is_async { ", asynchronous" } else { "" })
    }
}
