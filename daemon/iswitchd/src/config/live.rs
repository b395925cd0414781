//! Changes to the configuration of a running daemon: which settings can change, and which values are in force.

use serde::Serialize;
use serde_json::{Value, json};

use super::choices::{GroupDelivery, NonFinite};
use super::{Config, PortSpec, Settings};

/// Settings that can change while the daemon runs.
const LIVE: [&str; 9] = [
    "port",
    "slow_ms",
    "job_memory_mib",
    "max_jobs_per_source",
    "join_rate",
    "total_join_rate",
    "non_finite",
    "key_files",
    "log_level",
];

/// A setting that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Name of the setting, as in the configuration file.
    pub setting: String,
    /// Previous value.
    pub from: Value,
    /// New value.
    pub to: Value,
}

/// Reason why a new configuration cannot replace that of a running daemon. The running configuration is unchanged.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} cannot change while the switch is running; restart the switch, or restore the previous {}",
    .0.join(", "),
    values(.0.len())
)]
pub(crate) struct NotLive(Vec<String>);

fn values(count: usize) -> &'static str {
    if count == 1 { "value" } else { "values" }
}

impl Config {
    /// Returns the settings that differ between this configuration, which is in force, and `new`.
    ///
    /// # Errors
    /// Fails if one of the changed settings cannot change while the daemon runs.
    pub(crate) fn changes_to(&self, new: &Self) -> Result<Vec<Change>, NotLive> {
        let (old, new_settings) = (self.settings.by_name(), new.settings.by_name());
        let changes: Vec<_> = old
            .into_iter()
            .filter_map(|(setting, from)| {
                let to = new_settings.get(&setting).cloned().unwrap_or_default();
                (from != to).then_some(Change { setting, from, to })
            })
            .collect();
        // The monitor passes only packet sockets to a running daemon.
        let is_same_xdp = self.xdp_ports().eq(new.xdp_ports());
        let is_live = |change: &&Change| {
            LIVE.contains(&change.setting.as_str())
                && (change.setting != "port" || is_same_xdp && self.card.is_none())
        };
        let fixed: Vec<_> = changes.iter().filter(|change| !is_live(change)).map(describe).collect();
        if !fixed.is_empty() {
            return Err(NotLive(fixed));
        }
        let mut changes = changes;
        if self.key_digits() != new.key_digits() && changes.iter().all(|change| change.setting != "key_files")
        {
            let files = new_settings.get("key_files").cloned().unwrap_or_default();
            changes.push(Change { setting: "key_files".to_owned(), from: files.clone(), to: files });
        }
        Ok(changes)
    }

    fn xdp_ports(&self) -> impl Iterator<Item = &PortSpec> {
        self.interfaces.iter().filter(|port| port.xdp.is_some())
    }

    /// Returns this configuration. If the operator has not chosen the number of threads in either configuration,
    /// keeps the number from `old`, because the default depends on the ports.
    pub(crate) fn with_threads_of(mut self, old: &Self) -> Self {
        if !self.threads.is_chosen && !old.threads.is_chosen {
            self.threads = old.threads;
            self.settings.threads = old.settings.threads;
        }
        self
    }

    /// Returns each setting with its value in force and the origin of that value.
    pub(crate) fn in_force(&self) -> Vec<Value> {
        let describe = |(name, value): (String, Value)| {
            let origin = self.origins.of(&name).map_or("default".to_owned(), ToString::to_string);
            let is_live = LIVE.contains(&name.as_str());
            json!({ "setting": name, "value": value, "from": origin, "reloadable": is_live })
        };
        self.settings.by_name().into_iter().map(describe).collect()
    }

    fn key_digits(&self) -> Vec<(Option<u32>, String)> {
        self.job_keys.iter().map(|(job, key)| (*job, key.to_hex().to_string())).collect()
    }
}

fn describe(change: &Change) -> String {
    format!("{} (from {} to {})", change.setting, change.from, change.to)
}

impl Settings {
    /// Fills in the values of `config` for the settings that were not given.
    pub(super) fn filled(self, config: &Config) -> Self {
        let switch = &config.switch;
        let mib = |bytes: usize| (bytes >> 20) as u32;
        let (uplink_port, uplink_jobs) = config.uplink_ports;
        let non_finite = match switch.non_finite {
            iswitch_switch::NonFinite::Refuse => NonFinite::Refuse,
            iswitch_switch::NonFinite::Sum => NonFinite::Sum,
        };
        let groups = if switch.group_delivery { GroupDelivery::Auto } else { GroupDelivery::Off };
        let has_parent = !config.parents.is_empty();
        Self {
            uplink_port: self.uplink_port.or(has_parent.then_some(uplink_port)),
            uplink_jobs: self.uplink_jobs.or(has_parent.then_some(uplink_jobs)),
            threads: self.threads.or(Some(config.threads.count as u8)),
            udp_port: self.udp_port.or(Some(config.classifier.udp_port)),
            control_tos: self.control_tos.or(Some(config.classifier.control_tos)),
            data_tos: self.data_tos.or(Some(config.classifier.data_tos)),
            lease_ms: self.lease_ms.or(Some(switch.lease_ms)),
            slow_ms: self.slow_ms.or(Some(switch.slow_ms)),
            memory_mib: self.memory_mib.or(Some(mib(switch.memory_bytes))),
            job_memory_mib: self.job_memory_mib.or(Some(mib(switch.job_memory_bytes))),
            max_jobs_per_source: self.max_jobs_per_source.or(Some(switch.max_jobs_per_source as u32)),
            join_rate: self.join_rate.or(Some(switch.strangers.source_rate)),
            total_join_rate: self.total_join_rate.or(Some(switch.strangers.total_rate)),
            recv_buffer_bytes: self.recv_buffer_bytes.or(Some(config.buffer_bytes)),
            non_finite: self.non_finite.or(Some(non_finite)),
            ordered: self.ordered.or(Some(switch.ordered)),
            group_delivery: self.group_delivery.or(Some(groups)),
            spin_us: self.spin_us.or(Some(config.spin.as_micros() as u32)),
            control_socket: self.control_socket.or_else(|| config.control_socket.clone()),
            log_format: self.log_format.or(Some(config.log_format)),
            log_level: self.log_level.or(Some(config.log_level)),
            offload: self.offload.or(Some(config.offload)),
            ingress_rule: self.ingress_rule.or(Some(config.ingress_rule)),
            sandbox: self.sandbox.or(Some(config.sandbox)),
            ..self
        }
    }
}
