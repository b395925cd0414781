//! TLS 1.3 for connections over TCP.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig, version::TLS13};

/// ALPN protocol of gRPC, which uses HTTP/2.
const ALPN: &[u8] = b"h2";

/// TLS configuration of a shard: its certificate and key, and the CAs of its clients.
#[derive(Clone)]
pub struct ServerTls(Arc<ServerConfig>);

/// Reasons why the TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The content of a file is invalid.
    #[error("{field} is {}, expected a readable PEM file with {expected}: {reason}", path.display())]
    File {
        /// Name of the option.
        field: &'static str,
        /// Value of the option.
        path: PathBuf,
        /// Expected content of the file.
        expected: &'static str,
        /// Cause of the error.
        reason: String,
    },
    /// The files cannot be used together, for example because the certificate and the key do not match.
    #[error("tls_cert and tls_key cannot be used together: {0}")]
    Config(String),
}

impl ServerTls {
    /// Reads a certificate chain and its key. If `client_ca` is given, the shard serves only clients that present a
    /// certificate issued by one of the CAs in that file.
    ///
    /// # Errors
    /// Returns an error that names the file that cannot be used.
    pub fn read(cert: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Self, TlsError> {
        let chain = certificates("tls_cert", cert)?;
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| refused("tls_key", key, "a private key", &error.to_string()))?;
        let provider = Arc::new(default_provider());
        let config = |error: rustls::Error| TlsError::Config(error.to_string());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(config)?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let refuse =
                    |error: String| refused("tls_client_ca", path, "certificates of client CAs", &error);
                let mut roots = RootCertStore::empty();
                for certificate in certificates("tls_client_ca", path)? {
                    roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| refuse(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut server = builder.with_single_cert(chain, private).map_err(config)?;
        server.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self(Arc::new(server)))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

fn certificates(field: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, pem::Error>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err(refused(field, path, "certificates", "the file contains no certificates"))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(refused(field, path, "certificates", &error.to_string())),
    }
}

fn refused(field: &'static str, path: &Path, expected: &'static str, reason: &str) -> TlsError {
    TlsError::File { field, path: path.to_owned(), expected, reason: reason.to_owned() }
}

impl PartialEq for ServerTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}
