//! Settings that are a choice among named values.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Handling of contributions that contain NaN or infinities.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum NonFinite {
    /// Drop the contributions and notify their senders
    Refuse,
    /// Sum the contributions according to IEEE 754
    Sum,
}

/// Use of multicast groups for results.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum GroupDelivery {
    /// Send results to a multicast group that several workers have proved to receive
    Auto,
    /// Send results by unicast only
    Off,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

/// Least severe level of messages that are logged.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Failures that stop the switch from working
    Error,
    /// Conditions that limit the switch
    Warn,
    /// Events of members, jobs and ports
    Info,
    /// Diagnostic details
    Debug,
    /// All messages
    Trace,
}
