//! Options of a client.

use std::time::Duration;

use super::error::ClientError;
use crate::server::Token;

/// Certificates of a client, in PEM.
#[cfg(feature = "tls")]
#[derive(Clone, PartialEq)]
pub struct ClientTls {
    /// Certificates of the authorities that may vouch for shards.
    pub ca: Vec<u8>,
    /// The client's own certificate and its private key, for shards that want one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

#[cfg(feature = "tls")]
impl ClientTls {
    pub(super) fn config(&self) -> tonic::transport::ClientTlsConfig {
        use tonic::transport::{Certificate, ClientTlsConfig, Identity};
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.ca));
        match &self.identity {
            Some((cert, key)) => config.identity(Identity::from_pem(cert, key)),
            None => config,
        }
    }
}

#[cfg(feature = "tls")]
impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

/// How a client behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConfig {
    /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH` of each shard, or `reverb://HOST:PORT` of a Reverb server; all clients name
    /// them alike, in any order.
    pub shards: Vec<String>,
    /// The token of shards that were started with one. Not for Reverb servers, which have none.
    pub token: Option<Token>,
    /// How `https` addresses are verified; needed where there are any.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientTls>,
    /// How long a shard may hold a request back: what the rate limiter or a full table does to the caller.
    pub wait: Duration,
    /// How long shards that do not answer are tried, each and again, before the caller is told.
    pub patience: Duration,
    /// How long an insert that may have arrived is tried at the same shard, which knows whether it has, before it goes
    /// to the next one, where it may be a second time.
    pub failover_after: Duration,
    /// Inserts of one writer that are under way at a time; 1 to 512. More wait.
    pub in_flight_max: usize,
    /// First pause between two attempts; each is twice the one before, up to `backoff_max`, of which a random part.
    pub backoff_min: Duration,
    /// See [`Self::backoff_min`].
    pub backoff_max: Duration,
    /// How often the sizes of shards that were not heard of are asked for.
    pub refresh: Duration,
    /// Which shards samples come from follows from it.
    pub seed: u64,
}

impl ClientConfig {
    /// The usual options.
    pub fn new(shards: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            shards: shards.into_iter().map(Into::into).collect(),
            token: None,
            #[cfg(feature = "tls")]
            tls: None,
            wait: Duration::from_secs(60),
            patience: Duration::from_secs(60),
            failover_after: Duration::from_secs(5),
            in_flight_max: 8,
            backoff_min: Duration::from_millis(10),
            backoff_max: Duration::from_secs(1),
            refresh: Duration::from_secs(1),
            seed: 0,
        }
    }

    pub(super) fn check(&self) -> Result<(), ClientError> {
        if self.shards.is_empty() {
            return Err(ClientError::NoShard);
        }
        // Half of the numbers that a shard remembers: one that is still tried must not be forgotten.
        if !(1..=IN_FLIGHT_MAX).contains(&self.in_flight_max) {
            let value = self.in_flight_max.to_string();
            return Err(ClientError::Option { field: "in_flight_max", value, expected: "1 to 512" });
        }
        if self.backoff_min.is_zero() || self.backoff_min > self.backoff_max {
            let value = format!("{:?}", self.backoff_min);
            return Err(ClientError::Option {
                field: "backoff_min",
                value,
                expected: "above 0, up to backoff_max",
            });
        }
        Ok(())
    }
}

const IN_FLIGHT_MAX: usize = 512;
const _: () = assert!(IN_FLIGHT_MAX as u64 * 2 <= crate::limits::SEQ_WINDOW);
