//! Options of a client.

use std::time::Duration;

use super::error::ClientError;
use crate::server::Token;

/// Certificates that a client uses, as PEM text.
#[cfg(feature = "tls")]
#[derive(Clone, PartialEq)]
pub struct ClientTls {
    /// Certificates of the CAs that the client trusts to issue shard certificates.
    pub ca: Vec<u8>,
    /// Certificate and private key of the client, for shards that require client certificates.
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

/// Options of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConfig {
    /// Addresses of the shards: `http://HOST:PORT`, `https://HOST:PORT`, `unix:PATH` or, for a Reverb server,
    /// `reverb://HOST:PORT`. All clients must write the addresses in the same form; the order does not matter.
    pub shards: Vec<String>,
    /// Token for shards that require one. Reverb servers do not support tokens.
    pub token: Option<Token>,
    /// Certificates for `https` addresses; required if there is at least one such address.
    #[cfg(feature = "tls")]
    pub tls: Option<ClientTls>,
    /// Maximum time for which a shard may hold a request back because of its rate limiter or a full table.
    pub wait: Duration,
    /// Maximum time for which a call is retried while shards do not respond. After this time, the call fails.
    pub patience: Duration,
    /// Maximum time for which an insert is retried on a shard that may already have received it; that shard can detect
    /// the duplicate. After this time, the insert is sent to the next shard, where the item may be stored a second
    /// time.
    pub failover_after: Duration,
    /// Maximum number of inserts of one writer in flight; 1 to 512. Further inserts wait for a free slot.
    pub in_flight_max: usize,
    /// Initial backoff before an attempt is repeated. It doubles with each attempt up to `backoff_max`, and is
    /// randomised.
    pub backoff_min: Duration,
    /// Maximum backoff; see [`Self::backoff_min`].
    pub backoff_max: Duration,
    /// Maximum age of the known size of a shard. If no response has reported the size within this time, the client
    /// requests it.
    pub refresh: Duration,
    /// Seed for the random choice of the shards to sample from.
    pub seed: u64,
}

impl ClientConfig {
    /// Returns the default options for the given shards.
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
        // The limit is half the number of sequence numbers that a shard remembers, because the shard must not forget a
        // number that is still being retried.
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
