//! TLS 1.3, with optional client certificates. Keys and certificates are PEM files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// A certificate chain and its private key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Path of the PEM file with the certificates, the end-entity certificate first.
    pub certificates: PathBuf,
    /// Path of the PEM file with the private key of the first certificate.
    pub key: PathBuf,
}

/// Errors of the TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or has invalid content.
    #[error("{}: {reason}, expected a PEM file with {expected}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the error.
        reason: String,
        /// Expected content.
        expected: &'static str,
    },
    /// The certificate and the key do not match, or their type is unsupported.
    #[error("{}: {error}", path.display())]
    Identity {
        /// Path of the certificate.
        path: PathBuf,
        /// Cause of the error.
        error: rustls::Error,
    },
    /// The CA certificates cannot be used for verification.
    #[error("{}: {reason}", path.display())]
    Authority {
        /// Path of the certificates.
        path: PathBuf,
        /// Cause of the error.
        reason: String,
    },
}

/// The TLS configuration of a server, which presents a certificate.
#[derive(Clone)]
pub struct TlsServer(Arc<ServerConfig>);

/// The TLS configuration of a client. The client trusts the certificates issued by one CA.
#[derive(Clone)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsServer {
    /// Creates the configuration of a server that presents `identity` to its clients. If `client_authority` (a PEM file
    /// with CA certificates) is given, the server accepts only clients with a certificate issued by that CA.
    ///
    /// # Errors
    /// Fails if a file cannot be read or has invalid content.
    pub fn new(identity: &Identity, client_authority: Option<&Path>) -> Result<Self, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
        let builder = builder.expect("the provider has TLS 1.3");
        let builder = match client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(read_authority(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| authority_error(path, error))?)
            }
        };
        let (certificates, key) = read_identity(identity)?;
        let config = builder.with_single_cert(certificates, key);
        let mut config = config.map_err(|error| identity_error(identity, error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<server::TlsStream<TcpStream>> {
        TlsAcceptor::from(Arc::clone(&self.0)).accept(stream).await
    }
}

impl TlsClient {
    /// Creates the configuration of a client that trusts servers with a certificate issued by one of the CAs in the PEM
    /// file `authority`. If an identity is given, the client presents it to servers that request a certificate.
    ///
    /// # Errors
    /// Fails if a file cannot be read or has invalid content.
    pub fn new(authority: &Path, identity: Option<&Identity>) -> Result<Self, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
        let builder =
            builder.expect("the provider has TLS 1.3").with_root_certificates(read_authority(authority)?);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (certificates, key) = read_identity(identity)?;
                let config = builder.with_client_auth_cert(certificates, key);
                config.map_err(|error| identity_error(identity, error))?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// Connects to a server. The certificate of the server must be valid for `host`, which is a name or an address.
    pub(crate) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsServer(..)")
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsClient(..)")
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn identity_error(identity: &Identity, error: rustls::Error) -> TlsError {
    TlsError::Identity { path: identity.certificates.clone(), error }
}

fn authority_error(path: &Path, error: impl fmt::Display) -> TlsError {
    TlsError::Authority { path: path.to_owned(), reason: error.to_string() }
}

fn read_identity(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let certificates = read_certificates(&identity.certificates)?;
    let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(|error| TlsError::File {
        path: identity.key.clone(),
        reason: error.to_string(),
        expected: "a private key",
    })?;
    Ok((certificates, key))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |reason: String| TlsError::File { path: path.to_owned(), reason, expected: "certificates" };
    let all = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))?;
    if all.is_empty() { Err(failed("the file contains no certificates".to_owned())) } else { Ok(all) }
}

fn read_authority(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots.add(certificate).map_err(|error| authority_error(path, error))?;
    }
    Ok(roots)
}
