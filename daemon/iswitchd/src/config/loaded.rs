//! Settings as they were read, before defaults are filled in. Only this stage of the configuration needs access to
//! files.
//!
//! A sandboxed daemon cannot open files. For a reload, its monitor therefore reads the files again, and passes the
//! settings and keys to the daemon as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use iswitch_protocol::Key;
use iswitch_protocol::key_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Config, ConfigError, KeyFile, Settings};

/// Settings and keys that were read from the command line and from files.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Loaded {
    pub(super) settings: Settings,
    pub(super) origins: Origins,
    pub(super) keys: Vec<JobKey>,
    pub(super) no_control_socket: bool,
    pub(super) stop_on_stdin_eof: bool,
}

impl Loaded {
    /// Fills in the defaults and checks constraints between settings.
    pub(crate) fn resolve(self) -> Result<Config, ConfigError> {
        let keys = self.keys.into_iter().map(|JobKey { job, key }| (job, key)).collect();
        let mut config = self.settings.resolve(keys, self.origins)?;
        if self.no_control_socket {
            config.control_socket = None;
        }
        config.stop_on_stdin_eof = self.stop_on_stdin_eof;
        Ok(config)
    }
}

/// Key of a job, or of all jobs without a key of their own.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct JobKey {
    job: Option<u32>,
    #[serde(with = "hex")]
    key: Key,
}

/// Keys in JSON: hexadecimal digits, as in a key file.
mod hex {
    use super::Key;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use zeroize::Zeroizing;

    pub(super) fn serialize<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&key.to_hex())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        Key::from_hex(text.as_bytes()).map_err(D::Error::custom)
    }
}

pub(super) fn read_keys(files: &[KeyFile]) -> Result<Vec<JobKey>, ConfigError> {
    let read = |KeyFile { job, path }: &KeyFile| match key_file::read(path) {
        Ok(key) => Ok(JobKey { job: *job, key }),
        Err(source) => Err(ConfigError::KeyFile { path: path.clone(), source }),
    };
    files.iter().map(read).collect()
}

/// Origin of the value of a setting.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    CommandLine,
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Origins of the settings that were given, by name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Records `origin` for all settings that are given in `settings`, and replaces any earlier origins of these
    /// settings.
    pub(super) fn note(&mut self, settings: &Settings, origin: &Origin) {
        for (name, value) in settings.by_name() {
            if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) {
                self.0.insert(name, origin.clone());
            }
        }
    }

    /// Returns the origin of a setting, or `None` for a default.
    pub(super) fn of(&self, name: &str) -> Option<&Origin> {
        self.0.get(name)
    }
}

impl Settings {
    /// Returns the settings by name. A setting that is not given is null, or an empty list.
    pub(super) fn by_name(&self) -> serde_json::Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(settings)) => settings,
            _ => serde_json::Map::new(),
        }
    }
}
