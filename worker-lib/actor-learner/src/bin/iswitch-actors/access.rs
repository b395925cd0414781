//! Tokens and certificates for the connections between learners, actors, shards and cells.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use iswitch_models::tls::{Identity, TlsClient, TlsServer};
use iswitch_models::{Access, Credentials, Endpoint, Listen};
use iswitch_replay::client::{ClientConfig, ClientTls};
use iswitch_replay::server::Token;

/// Credentials that learners and actors present to the replay shards, and the CAs that issue the shards' certificates.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Access to replay shards")]
#[expect(clippy::struct_field_names, reason = "clap names the options after the fields")]
pub(super) struct ReplayAccess {
    /// File with the bearer token of the replay shards
    ///
    /// The file contains one line: the token from the shards' --token-file.
    #[arg(long, value_name = "FILE")]
    replay_token_file: Option<PathBuf>,
    /// PEM file with the CA certificates of https:// shards
    #[arg(long, value_name = "FILE")]
    replay_ca: Option<PathBuf>,
    /// PEM file with the client certificate for shards that require one
    #[arg(long, value_name = "FILE", requires_all = ["replay_key", "replay_ca"])]
    replay_cert: Option<PathBuf>,
    /// PEM file with the private key of --replay-cert
    #[arg(long, value_name = "FILE", requires = "replay_cert")]
    replay_key: Option<PathBuf>,
}

/// Credentials that actors and shards present to the learner and its cells, and the CAs that issue the certificates of
/// the learner and its cells.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Access to the learner and its cells")]
#[expect(clippy::struct_field_names, reason = "clap names the options after the fields")]
pub(super) struct ModelAccess {
    /// File with the bearer token of the learner and cells in --models
    ///
    /// The file contains one line: the token from the learner's --model-read-token-file and the cells'
    /// --read-token-file.
    #[arg(long, value_name = "FILE")]
    model_token_file: Option<PathBuf>,
    /// PEM file with the CA certificates of https:// addresses in --models
    #[arg(long, value_name = "FILE")]
    model_ca: Option<PathBuf>,
    /// PEM file with the client certificate for learners and cells
    ///
    /// This process presents it to learners and cells that require a client certificate.
    #[arg(long, value_name = "FILE", requires_all = ["model_key", "model_ca"])]
    model_cert: Option<PathBuf>,
    /// PEM file with the private key of --model-cert
    #[arg(long, value_name = "FILE", requires = "model_cert")]
    model_key: Option<PathBuf>,
}

/// Access control of the first learner's policy server.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Access to policies at --publish")]
#[expect(clippy::struct_field_names, reason = "clap names the options after the fields")]
pub(super) struct PublishAccess {
    /// File with the bearer token that readers of policies must send
    ///
    /// The file contains one line. Without this option, clients need no token to read policies.
    #[arg(long, value_name = "FILE")]
    model_read_token_file: Option<PathBuf>,
    /// PEM file with the certificate chain for TLS at --publish
    ///
    /// With this option, all TCP addresses of --publish require TLS 1.3.
    #[arg(long, value_name = "FILE", requires = "model_tls_key")]
    model_tls_cert: Option<PathBuf>,
    /// PEM file with the private key of --model-tls-cert
    #[arg(long, value_name = "FILE", requires = "model_tls_cert")]
    model_tls_key: Option<PathBuf>,
    /// PEM file with the CA certificates of clients
    ///
    /// With this option, the learner serves only clients that present a certificate issued by one of these CAs.
    #[arg(long, value_name = "FILE", requires = "model_tls_cert")]
    model_client_ca: Option<PathBuf>,
}

impl ReplayAccess {
    /// Reads the credentials for the given shards, and returns the client options that contain them.
    pub(super) fn config(&self, shards: &[String]) -> anyhow::Result<ClientConfig> {
        let has_tls = |address: &String| address.starts_with("https://");
        let plain = |address: &&String| !has_tls(address) && !address.starts_with("unix:");
        check_tls(
            "--replay-ca",
            self.replay_ca.is_some(),
            shards.iter().find(|address| has_tls(address)),
            shards.iter().filter(plain).find(|address| is_elsewhere(address)),
        )?;
        let token = self.replay_token_file.as_deref().map(replay_token).transpose()?;
        if token.is_some() && shards.iter().filter(plain).any(|address| is_elsewhere(address)) {
            warn_of("--replay-token-file", "https:// addresses for the shards, and --replay-ca");
        }
        Ok(ClientConfig { token, tls: self.tls()?, ..ClientConfig::new(shards) })
    }

    fn tls(&self) -> anyhow::Result<Option<ClientTls>> {
        let Some(ca) = &self.replay_ca else { return Ok(None) };
        let identity = identity(self.replay_cert.as_ref(), self.replay_key.as_ref());
        // The replay client takes bytes, so its errors cannot name a file. Therefore, check the files first.
        TlsClient::new(ca, identity.as_ref()).context("--replay-ca, --replay-cert, --replay-key")?;
        let read = |path: &PathBuf| std::fs::read(path).with_context(|| path.display().to_string());
        let identity =
            identity.map(|it| anyhow::Ok((read(&it.certificates)?, read(&it.key)?))).transpose()?;
        Ok(Some(ClientTls { ca: read(ca)?, identity }))
    }
}

impl ModelAccess {
    /// Reads the credentials for the given learners and cells.
    pub(super) fn credentials(&self, models: &[Endpoint]) -> anyhow::Result<Credentials> {
        let has_tls = |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Tls(_));
        let plain =
            |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Tcp(address) if is_elsewhere(address));
        check_tls(
            "--model-ca",
            self.model_ca.is_some(),
            models.iter().find(has_tls),
            models.iter().find(plain),
        )?;
        let token = self.model_token_file.as_deref().map(|path| model_token("--model-token-file", path));
        if token.is_some() && models.iter().any(|endpoint| plain(&endpoint)) {
            warn_of("--model-token-file", "https:// addresses in --models, and --model-ca");
        }
        let identity = identity(self.model_cert.as_ref(), self.model_key.as_ref());
        let tls = self.model_ca.as_ref().map(|ca| TlsClient::new(ca, identity.as_ref())).transpose();
        let tls = tls.context("--model-ca, --model-cert, --model-key")?;
        Ok(Credentials { token: token.transpose()?, tls })
    }
}

impl PublishAccess {
    /// Reads the access control settings of a server that listens on the given addresses.
    pub(super) fn read(&self, publish: &[Listen]) -> anyhow::Result<Access> {
        let token = self.model_read_token_file.as_deref();
        let read = token.map(|path| model_token("--model-read-token-file", path)).transpose()?;
        let identity = identity(self.model_tls_cert.as_ref(), self.model_tls_key.as_ref());
        let tls = identity.map(|identity| TlsServer::new(&identity, self.model_client_ca.as_deref()));
        let tls = tls.transpose().context("--model-tls-cert, --model-tls-key, --model-client-ca")?;
        let is_exposed = |listen: &Listen| matches!(listen, Listen::Tcp(at) if !at.ip().is_loopback());
        if read.is_some() && tls.is_none() && publish.iter().any(is_exposed) {
            warn_of("--model-read-token-file", "--model-tls-cert and --model-tls-key");
        }
        Ok(Access { read, publish: None, tls })
    }
}

/// Reads the token of the replay shards.
pub(super) fn replay_token(path: &Path) -> anyhow::Result<Token> {
    Token::read(path).with_context(|| format!("--replay-token-file {}", path.display()))
}

/// Reads the token of the learner and its cells.
pub(super) fn model_token(option: &str, path: &Path) -> anyhow::Result<iswitch_models::Token> {
    iswitch_models::Token::read(path).with_context(|| format!("{option} {}", path.display()))
}

fn identity(certificates: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<Identity> {
    let (certificates, key) = (certificates?.clone(), key?.clone());
    Some(Identity { certificates, key })
}

/// Rejects `https://` addresses if no CA is given, and unencrypted addresses if a CA is given. Otherwise, a mistyped
/// address or a forged description of the run could disable encryption.
fn check_tls<A: std::fmt::Display>(
    option: &str,
    has_authority: bool,
    tls: Option<&A>,
    plain: Option<&A>,
) -> anyhow::Result<()> {
    match (has_authority, tls, plain) {
        (false, Some(address), _) => {
            bail!("{address} requires TLS: pass its CA certificates with {option} FILE")
        }
        (true, _, Some(address)) => bail!(
            "{address} is not encrypted, expected an https:// address because {option} is given; only unix: and \
             loopback addresses may be unencrypted"
        ),
        _ => Ok(()),
    }
}

fn warn_of(option: &str, remedy: &str) {
    eprintln!(
        "iswitch: {option}: the token is sent unencrypted and can be read on the network; use {remedy}"
    );
}

/// Returns whether an address, with or without a scheme, may belong to a machine other than this one.
fn is_elsewhere(address: &str) -> bool {
    let bare = address.split_once("://").map_or(address, |(_, bare)| bare).trim_end_matches('/');
    let host = bare.rsplit_once(':').map_or(bare, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host != "localhost" && !host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_local() {
        for here in ["localhost:1", "127.0.0.1:1", "http://127.8.0.1:1/", "[::1]:1", "http://[::1]:1"] {
            assert!(!is_elsewhere(here), "{here}");
        }
        for elsewhere in ["10.0.0.1:1", "http://localhost.example:1", "[fe80::1]:1", "reverb://a:1"] {
            assert!(is_elsewhere(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_ca_file_and_plain_addresses_are_mutually_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let access =
            ReplayAccess { replay_ca: Some(folder.path().join("missing.pem")), ..Default::default() };
        let error = |access: &ReplayAccess, shard: &str| {
            format!("{:#}", access.config(&[shard.to_owned()]).unwrap_err())
        };
        assert!(error(&access, "http://10.0.0.1:1").starts_with("http://10.0.0.1:1 is not encrypted"));
        assert!(error(&access, "https://10.0.0.1:1").contains("missing.pem"));
        let none = ReplayAccess::default();
        assert!(
            error(&none, "https://10.0.0.1:1").contains("pass its CA certificates with --replay-ca FILE")
        );
        assert!(none.config(&["http://10.0.0.1:1".to_owned()]).is_ok());
        let models = ["10.0.0.1:1".parse().unwrap()];
        let access = ModelAccess { model_ca: Some(folder.path().join("missing.pem")), ..Default::default() };
        assert!(access.credentials(&models).unwrap_err().to_string().contains("is not encrypted"));
    }
}
