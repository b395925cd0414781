//! Failure rates of the nodes, racks and switches of GPUs in requests, by name.

use serde::Serialize;

use super::cluster::Level;
use super::domain::Domain;
use super::failure::RATE_MAX;
use super::{Cluster, Failures};
use iswitch_study::StudyError;

/// Repair time of domains in seconds. The agent makes decisions for one moment, so it does not matter.
const REPAIR_S: f64 = 1.0;
/// Relative tolerance for checking that the rate of a GPU includes the rates of its domains.
const TOLERANCE: f64 = 1e-9;

/// Failure rates of the node, the rack and the switch of a GPU, in failures per year. A rate that is absent is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct SharedRates {
    #[serde(rename = "node_rate", skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<f64>,
    #[serde(rename = "rack_rate", skip_serializing_if = "Option::is_none")]
    pub(super) rack: Option<f64>,
    #[serde(rename = "switch_rate", skip_serializing_if = "Option::is_none")]
    pub(super) switch: Option<f64>,
}

impl SharedRates {
    /// Collects the rates of all levels.
    pub(super) fn of(rate: impl Fn(Level) -> Option<f64>) -> Self {
        Self { node: rate(Level::Node), rack: rate(Level::Rack), switch: rate(Level::Switch) }
    }

    /// Returns the rate of a level.
    pub(super) fn at(&self, level: Level) -> f64 {
        let rate = match level {
            Level::Node => self.node,
            Level::Rack => self.rack,
            Level::Switch => self.switch,
        };
        rate.unwrap_or(0.0)
    }

    fn sum(&self) -> f64 {
        Level::ALL.into_iter().map(|level| self.at(level)).sum()
    }

    /// Checks the rates of an entry in a request. `name` returns the full name of a field of the entry for error
    /// messages; `rate` is the rate of the GPU, which includes these rates.
    ///
    /// # Errors
    /// Names the first rate that is out of range, or the rate of the GPU if it is lower than the sum of these rates.
    pub(super) fn check(&self, rate: f64, name: impl Fn(&str) -> String) -> Result<(), StudyError> {
        for level in Level::ALL {
            let own = self.at(level);
            if !(0.0..=RATE_MAX).contains(&own) {
                let expected = format!("0 to {RATE_MAX} failures a year");
                return Err(StudyError::field(name(&format!("{level}_rate")), own, expected));
            }
        }
        if self.sum() > rate * (1.0 + TOLERANCE) {
            let expected =
                format!("at least {}, the sum of its node_rate, rack_rate and switch_rate", self.sum());
            return Err(StudyError::field(name("rate"), rate, expected));
        }
        Ok(())
    }
}

/// Returns random failures of the GPUs of a cluster and of its nodes, racks and switches. For each GPU, `rates`
/// contains its failure rate in failures per year, and the part of it that is due to its node, rack and switch.
///
/// # Errors
/// Fails if two GPUs of a node, rack or switch have different rates for it.
pub(super) fn failures(cluster: &Cluster, rates: &[(f64, SharedRates)]) -> Result<Failures, StudyError> {
    let own = rates.iter().map(|(rate, shared)| (rate - shared.sum()).max(0.0)).collect();
    let mut domains = Vec::new();
    for level in Level::ALL {
        for gpus in cluster.domains(level) {
            let first = rates[gpus.start].1.at(level);
            if let Some(gpu) = gpus.clone().find(|gpu| rates[*gpu].1.at(level) != first) {
                let expected = format!("{first}, as for GPU {} of the same {level}", gpus.start);
                let field = format!("{level}_rate of GPU {gpu}");
                return Err(StudyError::field(field, rates[gpu].1.at(level), expected));
            }
            if first > 0.0 {
                domains.push(Domain::poisson(gpus, first, REPAIR_S)?.with_level(level));
            }
        }
    }
    Failures::poisson(own)?.with_domains(domains)
}
