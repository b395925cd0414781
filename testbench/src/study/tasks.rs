//! Training tasks for comparing methods. They are small enough that a machine with two cores solves them in minutes.

use std::fmt;

use iswitch::ElementTypes;

/// Training task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Name of the algorithm, as on the command line.
    pub algorithm: &'static str,
    /// Name of the environment.
    pub env: &'static str,
    /// Mean return of the last 100 episodes at which the task counts as solved.
    pub threshold: f64,
}

/// Tasks for the four algorithms.
pub const TASKS: [Task; 4] = [
    Task { algorithm: "a2c", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "dqn", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "ppo", env: "CartPole-v1", threshold: 475.0 },
    Task { algorithm: "ddpg", env: "Pendulum-v1", threshold: -200.0 },
];

/// Task for PPO that replaces the one in [`TASKS`] in the comparison of element types, because PPO reaches the maximum
/// return on CartPole with any element type.
pub const HOPPER: Task = Task { algorithm: "ppo", env: "PlanarHopper-v0", threshold: 2000.0 };

/// Method of aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Value of `--aggregator`; `local` is one process with the whole batch.
    pub aggregator: &'static str,
    /// Whether the method is asynchronous, so that workers do not wait for each other.
    pub is_async: bool,
    /// Element types; the value of `--wire`.
    pub elements: ElementTypes,
}

impl Method {
    /// The synchronous switch.
    pub const SWITCH: Self = Self::new("switch", false);

    /// The two asynchronous methods, the server first.
    pub const ASYNCHRONOUS: [Self; 2] = [Self::new("ps", true), Self::new("switch", true)];

    /// The synchronous methods, the single process first.
    pub const SYNCHRONOUS: [Self; 4] =
        [Self::new("local", false), Self::SWITCH, Self::new("ps", false), Self::new("ring", false)];

    const fn new(aggregator: &'static str, is_async: bool) -> Self {
        Self { aggregator, is_async, elements: ElementTypes::F32 }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.aggregator {
            "local" => "one process",
            "ps" => "parameter server",
            other => other,
        })?;
        if self.elements != ElementTypes::F32 {
            write!(f, ", {}", self.elements)?;
        }
        f.write_str(if self.is_async { ", asynchronous" } else { "" })
    }
}
