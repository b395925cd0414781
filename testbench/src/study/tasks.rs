//! Training tasks to compare methods: small ones that a machine with two cores learns in minutes.

use std::fmt;

/// One task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Name of the algorithm on the command line.
    pub algorithm: &'static str,
    /// Environment.
    pub env: &'static str,
    /// Mean return of the last 100 episodes that counts as learnt.
    pub threshold: f64,
}

/// Tasks of the four algorithms.
pub const TASKS: [Task; 4] = [
    Task { algorithm: "a2c", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "dqn", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "ppo", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "ddpg", env: "Pendulum-v1", threshold: -200.0 },
];

/// Method of aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Value of `--aggregator`; `local` is one process with the whole batch.
    pub aggregator: &'static str,
    /// Whether workers do not wait for each other.
    pub is_async: bool,
}

impl Method {
    /// The two asynchronous methods, the server first.
    pub const ASYNCHRONOUS: [Self; 2] =
        [Self { aggregator: "ps", is_async: true }, Self { aggregator: "switch", is_async: true }];

    /// The synchronous methods, the single process first.
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
