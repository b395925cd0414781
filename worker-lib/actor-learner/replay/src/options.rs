//! A shard's options as text: a TOML file, and the same words on a command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

#[cfg(feature = "tls")]
use crate::server::ServerTls;
use crate::server::{ShardConfig, Token, TokenError};
use crate::store::Durability;
use crate::table::{ErrorBuffer, LimiterError, RateLimiter, Selector, TableConfig, WhenFull};

/// Options that are not what they should be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionsError {
    /// Not TOML, an unknown word, or a value of the wrong kind.
    #[error("{place}: {text}")]
    Syntax {
        /// The file, or the option.
        place: String,
        /// What is wrong.
        text: String,
    },
    /// The token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Certificates.
    #[error("{0}")]
    Tls(String),
    /// A table's rate limiter.
    #[error("table {table:?}: {source}")]
    Limiter {
        /// The table's name.
        table: String,
        /// What is wrong.
        source: LimiterError,
    },
}

/// What a file may say; a command line may say it again.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShardOptions {
    /// `IP:PORT` or `unix:PATH`, any number.
    pub listen: Vec<String>,
    /// Tables.
    #[serde(rename = "table")]
    pub tables: Vec<TableOptions>,
    /// See [`ShardConfig::memory_max_bytes`].
    pub memory_max: Option<Size>,
    /// See [`ShardConfig::item_max_bytes`].
    pub item_max: Option<Size>,
    /// See [`ShardConfig::connections_max`].
    pub connections_max: Option<usize>,
    /// A file with one line: [`ShardConfig::token`].
    pub token_file: Option<PathBuf>,
    /// Files with a chain of certificates and its private key: connections over TCP must use TLS.
    pub tls_cert: Option<PathBuf>,
    /// See [`Self::tls_cert`].
    pub tls_key: Option<PathBuf>,
    /// A file with certificates of authorities: clients must have a certificate of one of these.
    pub tls_client_ca: Option<PathBuf>,
    /// See [`ShardConfig::data_dir`].
    pub data_dir: Option<PathBuf>,
    /// See [`ShardConfig::durability`].
    pub durability: Option<Durability>,
    /// Seconds; see [`ShardConfig::snapshot_every`].
    pub snapshot_every: Option<f64>,
    /// See [`ShardConfig::seed`].
    pub seed: Option<u64>,
}

/// A number of bytes: `65536`, `64KiB`, `16MiB`, `2GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
        let unit = units.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?, *power)));
        let (number, power) = unit.unwrap_or((text, 0));
        let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << power));
        bytes
            .map(Self)
            .ok_or_else(|| format!("size is {text:?}, expected bytes, or a number with KiB, MiB, GiB or TiB"))
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

/// What a table starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// [`TableConfig::uniform`].
    #[default]
    Table,
    /// [`TableConfig::queue`].
    Queue,
    /// [`TableConfig::stack`].
    Stack,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableOptions {
    /// See [`TableConfig::name`].
    pub name: String,
    /// What the other options start from.
    #[serde(default)]
    pub kind: TableKind,
    /// See [`TableConfig::capacity_items`].
    pub capacity: u64,
    /// See [`TableConfig::capacity_bytes`]; a share of the shard's memory if it is not given.
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
    /// Makes the limiter a [`RateLimiter::sample_to_insert_ratio`].
    pub samples_per_insert: Option<f64>,
    /// Its margin; twice the least one if it is not given.
    pub error_buffer: Option<f64>,
}

impl TableOptions {
    /// Reads `name=replay,capacity=1000000,sampler=prioritized:0.6`, the words of the file with commas between them.
    ///
    /// # Errors
    /// What is wrong.
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
    /// Certificate and key, if both are given.
    fn tls_files(&self) -> Result<Option<[&Path; 2]>, OptionsError> {
        let refuse = |text: &str| Err(OptionsError::Tls(text.to_owned()));
        match (&self.tls_cert, &self.tls_key, &self.tls_client_ca) {
            (Some(cert), Some(key), _) => Ok(Some([cert, key])),
            (None, None, None) => Ok(None),
            (None, None, Some(_)) => refuse("tls_client_ca is set, expected tls_cert and tls_key with it"),
            (Some(_), None, _) => refuse("tls_cert is set, expected tls_key with it"),
            (None, Some(_), _) => refuse("tls_key is set, expected tls_cert with it"),
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn parse(place: &str, text: &str) -> Result<Self, OptionsError> {
        let syntax = |error: toml::de::Error| OptionsError::Syntax {
            place: place.to_owned(),
            text: error.to_string(),
        };
        toml::from_str(text).map_err(syntax)
    }

    /// These options, and where they say nothing those of `other`. Tables and addresses are not mixed.
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

    /// The options of the shard. Where there is a data directory and nothing is said, what is acknowledged survives the
    /// end of the process.
    ///
    /// # Errors
    /// A rate limiter that would block for ever, seconds that are none, or a token that cannot be read.
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
            return Err(OptionsError::Tls("tls_cert needs a build with the feature tls".to_owned()));
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
