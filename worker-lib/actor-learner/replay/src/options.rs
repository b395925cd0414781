//! Textual form of a shard's options: a TOML file, or the same keys on a command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

#[cfg(feature = "tls")]
use crate::server::ServerTls;
use crate::server::{ShardConfig, Token, TokenError};
use crate::store::Durability;
use crate::table::{ErrorBuffer, LimiterError, RateLimiter, Selector, TableConfig, WhenFull};

/// Errors of a shard's options.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionsError {
    /// The text is not TOML, contains an unknown key, or has a value of the wrong type.
    #[error("{place}: {text}")]
    Syntax {
        /// Name of the file or of the command-line option that contains the text.
        place: String,
        /// Cause of the error.
        text: String,
    },
    /// The token is invalid.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The TLS files are incomplete or invalid.
    #[error("{0}")]
    Tls(String),
    /// The rate limiter of a table is invalid.
    #[error("table {table:?}: {source}")]
    Limiter {
        /// Name of the table.
        table: String,
        /// Cause of the error.
        source: LimiterError,
    },
}

/// Options that a file may contain. The command line overrides them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShardOptions {
    /// Addresses to listen on, each in the form `IP:PORT` or `unix:PATH`.
    pub listen: Vec<String>,
    /// Tables of the shard.
    #[serde(rename = "table")]
    pub tables: Vec<TableOptions>,
    /// See [`ShardConfig::memory_max_bytes`].
    pub memory_max: Option<Size>,
    /// See [`ShardConfig::item_max_bytes`].
    pub item_max: Option<Size>,
    /// See [`ShardConfig::connections_max`].
    pub connections_max: Option<usize>,
    /// Path of a file whose only line is the [`ShardConfig::token`].
    pub token_file: Option<PathBuf>,
    /// Path of a PEM file with the certificate chain. If it is set, TCP connections must use TLS.
    pub tls_cert: Option<PathBuf>,
    /// Path of the private key of [`Self::tls_cert`].
    pub tls_key: Option<PathBuf>,
    /// Path of a PEM file with CA certificates. If it is set, each client must present a certificate that was issued by
    /// one of the CAs.
    pub tls_client_ca: Option<PathBuf>,
    /// See [`ShardConfig::data_dir`].
    pub data_dir: Option<PathBuf>,
    /// See [`ShardConfig::durability`].
    pub durability: Option<Durability>,
    /// Interval between snapshots, in seconds; see [`ShardConfig::snapshot_every`].
    pub snapshot_every: Option<f64>,
    /// See [`ShardConfig::seed`].
    pub seed: Option<u64>,
}

/// Size in bytes, written as `65536`, `64KiB`, `16MiB` or `2GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
        let unit = units.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?, *power)));
        let (number, power) = unit.unwrap_or((text, 0));
        let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << power));
        bytes.map(Self).ok_or_else(|| {
            format!(
                "size is {text:?}, expected a number of bytes, or a number with the unit KiB, MiB, GiB or TiB"
            )
        })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Bytes(u64),
            Text(String),
        }
        match Either::deserialize(from)? {
            Either::Bytes(bytes) => Ok(Self(bytes)),
            Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// Preset that determines the defaults of a table's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Options of [`TableConfig::uniform`].
    #[default]
    Table,
    /// Options of [`TableConfig::queue`].
    Queue,
    /// Options of [`TableConfig::stack`].
    Stack,
}

/// Options of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableOptions {
    /// See [`TableConfig::name`].
    pub name: String,
    /// Preset that provides the values of options that are not given.
    #[serde(default)]
    pub kind: TableKind,
    /// See [`TableConfig::capacity_items`].
    pub capacity: u64,
    /// See [`TableConfig::capacity_bytes`]. If it is not given, the table gets a share of the shard's memory.
    pub capacity_bytes: Option<Size>,
    /// See [`TableConfig::sampler`].
    pub sampler: Option<Selector>,
    /// See [`TableConfig::remover`].
    pub remover: Option<Selector>,
    /// See [`TableConfig::max_times_sampled`].
    pub max_times_sampled: Option<u32>,
    /// See [`TableConfig::when_full`].
    pub when_full: Option<WhenFull>,
    /// See [`RateLimiter::min_size_to_sample`].
    pub min_size_to_sample: Option<u64>,
    /// Number of samples per insert. If it is given, the limiter is a [`RateLimiter::sample_to_insert_ratio`].
    pub samples_per_insert: Option<f64>,
    /// Margin for the number of samples per insert; see [`Self::samples_per_insert`]. If it is not given, it is twice
    /// the smallest valid margin.
    pub error_buffer: Option<f64>,
}

impl TableOptions {
    /// Parses options such as `name=replay,capacity=1000000,sampler=prioritized:0.6`: comma-separated pairs with the
    /// same keys as in the file.
    ///
    /// # Errors
    /// Returns an error that describes the first invalid key or value.
    pub fn parse(text: &str) -> Result<Self, OptionsError> {
        let mut toml = String::new();
        for pair in text.split(',') {
            let (word, value) = pair.split_once('=').unwrap_or((pair, ""));
            let is_number = value.parse::<f64>().is_ok();
            let value = if is_number { value.to_owned() } else { toml::Value::from(value).to_string() };
            toml.extend([word, " = ", &value, "\n"]);
        }
        let place = format!("--table {text}");
        toml::from_str(&toml)
            .map_err(|error| OptionsError::Syntax { place, text: error.message().to_owned() })
    }

    fn config(self) -> Result<TableConfig, OptionsError> {
        let capacity_bytes = self.capacity_bytes.map_or(u64::MAX, |size| size.0);
        let kind = match self.kind {
            TableKind::Table => TableConfig::uniform,
            TableKind::Queue => TableConfig::queue,
            TableKind::Stack => TableConfig::stack,
        };
        let base = kind(&self.name, self.capacity, capacity_bytes);
        let limiter = match (self.samples_per_insert, self.min_size_to_sample) {
            (None, None) => Ok(base.limiter),
            (None, Some(min_size_to_sample)) => Ok(RateLimiter { min_size_to_sample, ..base.limiter }),
            (Some(ratio), size) => {
                let margin = ErrorBuffer::Margin(self.error_buffer.unwrap_or(2.0 * ratio.max(1.0)));
                RateLimiter::sample_to_insert_ratio(ratio, size.unwrap_or(1), margin)
            }
        };
        Ok(TableConfig {
            limiter: limiter.map_err(|source| OptionsError::Limiter { table: self.name, source })?,
            sampler: self.sampler.unwrap_or(base.sampler),
            remover: self.remover.unwrap_or(base.remover),
            max_times_sampled: self.max_times_sampled.unwrap_or(base.max_times_sampled),
            when_full: self.when_full.unwrap_or(base.when_full),
            ..base
        })
    }
}

impl ShardOptions {
    /// Returns the paths of the certificate and the key. Both options must be given, or neither.
    fn tls_files(&self) -> Result<Option<[&Path; 2]>, OptionsError> {
        let refuse = |text: &str| Err(OptionsError::Tls(text.to_owned()));
        match (&self.tls_cert, &self.tls_key, &self.tls_client_ca) {
            (Some(cert), Some(key), _) => Ok(Some([cert, key])),
            (None, None, None) => Ok(None),
            (None, None, Some(_)) => {
                refuse("tls_client_ca is set without tls_cert and tls_key, expected all three")
            }
            (Some(_), None, _) => refuse("tls_cert is set without tls_key, expected both"),
            (None, Some(_), _) => refuse("tls_key is set without tls_cert, expected both"),
        }
    }

    /// Parses the text of an options file.
    ///
    /// # Errors
    /// Returns an error that describes the problem and names its line.
    pub fn parse(place: &str, text: &str) -> Result<Self, OptionsError> {
        let syntax = |error: toml::de::Error| OptionsError::Syntax {
            place: place.to_owned(),
            text: error.to_string(),
        };
        toml::from_str(text).map_err(syntax)
    }

    /// Fills in the options that are missing in `self` from `other`. The lists of tables and of addresses are not
    /// merged: if a list in `self` is empty, the list in `other` replaces it.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            listen: if self.listen.is_empty() { other.listen } else { self.listen },
            tables: if self.tables.is_empty() { other.tables } else { self.tables },
            memory_max: self.memory_max.or(other.memory_max),
            item_max: self.item_max.or(other.item_max),
            connections_max: self.connections_max.or(other.connections_max),
            token_file: self.token_file.or(other.token_file),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            tls_client_ca: self.tls_client_ca.or(other.tls_client_ca),
            data_dir: self.data_dir.or(other.data_dir),
            durability: self.durability.or(other.durability),
            snapshot_every: self.snapshot_every.or(other.snapshot_every),
            seed: self.seed.or(other.seed),
        }
    }

    /// Builds the configuration of the shard. If a data directory is given, but no durability, the durability is
    /// [`Durability::Write`].
    ///
    /// # Errors
    /// Fails if a rate limiter would block forever, a duration is invalid, or the token cannot be read.
    pub fn config(self) -> Result<ShardConfig, OptionsError> {
        let usual = ShardConfig::default();
        let journalled = if self.data_dir.is_some() { Durability::Write } else { Durability::None };
        let every = self.snapshot_every.map(Duration::try_from_secs_f64).transpose();
        let snapshot_every = every.map_err(|error| {
            let place = "snapshot_every".to_owned();
            OptionsError::Syntax { place, text: format!("{error}, expected a number of seconds above 0") }
        })?;
        let tls = self.tls_files()?;
        #[cfg(feature = "tls")]
        let tls = tls
            .map(|[cert, key]| ServerTls::read(cert, key, self.tls_client_ca.as_deref()))
            .transpose()
            .map_err(|error| OptionsError::Tls(error.to_string()))?;
        #[cfg(not(feature = "tls"))]
        if tls.is_some() {
            return Err(OptionsError::Tls("tls_cert requires a build with the tls feature".to_owned()));
        }
        Ok(ShardConfig {
            #[cfg(feature = "tls")]
            tls,
            tables: self.tables.into_iter().map(TableOptions::config).collect::<Result<_, _>>()?,
            memory_max_bytes: self.memory_max.map_or(usual.memory_max_bytes, |size| size.0),
            item_max_bytes: self.item_max.map_or(usual.item_max_bytes, |size| size.0),
            connections_max: self.connections_max.unwrap_or(usual.connections_max),
            token: self.token_file.as_deref().map(Token::read).transpose()?,
            durability: self.durability.unwrap_or(journalled),
            data_dir: self.data_dir,
            snapshot_every,
            seed: self.seed.unwrap_or(usual.seed),
        })
    }
}

#[cfg(test)]
mod tests;
