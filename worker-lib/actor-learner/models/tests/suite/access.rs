//! Tests of access control for reading and publishing: tokens, TLS and client certificates.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{any_port, ask, endpoint, learner, model, name};
use iswitch_models::cell::{self, CellOptions};
use iswitch_models::learner::{LearnerOptions, PublishFrom};
use iswitch_models::tls::{Identity, TlsClient, TlsServer};
use iswitch_models::{
    Access, ClientOptions, Credentials, Endpoint, Manifest, ModelClient, ModelError, Server, ServerOptions,
    Token, publish,
};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PUBLISH: &str = "the-token-of-publishers";
const READ: &str = "the-token-of-readers";

fn token(text: &str) -> Token {
    Token::new(text).unwrap()
}

fn serving(access: Access) -> LearnerOptions {
    let server = ServerOptions { access, ..ServerOptions::default() };
    LearnerOptions { server, publish_from: PublishFrom::Everywhere, ..LearnerOptions::default() }
}

fn with(credentials: Credentials) -> ClientOptions {
    ClientOptions { credentials, ..ClientOptions::default() }
}

fn showing(text: &str) -> ClientOptions {
    with(Credentials { token: Some(token(text)), ..Credentials::default() })
}

async fn put(at: &Endpoint, version: u64, options: &ClientOptions) -> Result<Manifest, ModelError> {
    publish(at, &name(), version, model(version, 1000), options).await
}

/// Reads the latest version, and returns its version number.
async fn get(at: &Endpoint, options: ClientOptions) -> Result<u64, ModelError> {
    let mut client = ModelClient::new(name(), std::slice::from_ref(at), options)?;
    Ok(client.poll().await?.unwrap().manifest.version)
}

fn is_unauthorized(error: &ModelError) -> bool {
    matches!(error, ModelError::Refused { status, .. } if status.as_u16() == 401)
}

#[tokio::test]
async fn without_the_token_nothing_is_published_or_read() {
    let access = Access { publish: Some(token(PUBLISH)), read: Some(token(READ)), ..Access::default() };
    let (_store, learner) = learner(serving(access)).await;
    let at = endpoint(&learner);
    for wrong in [ClientOptions::default(), showing(READ), showing("another-token-of-publishers")] {
        assert!(is_unauthorized(&put(&at, 1, &wrong).await.unwrap_err()));
    }
    put(&at, 1, &showing(PUBLISH)).await.unwrap();
    for wrong in [ClientOptions::default(), showing(PUBLISH)] {
        assert!(is_unauthorized(&get(&at, wrong).await.unwrap_err()));
    }
    assert_eq!(get(&at, showing(READ)).await.unwrap(), 1);
    for path in ["/models/ppo/latest", "/models/ppo/1", "/metrics", "/models/ppo/latest?wait=1"] {
        let answer = ask(&at, &format!("GET {path}"), &[]).await;
        assert_eq!((answer.status, answer.error()), (401, "unauthorized".to_owned()), "{path}");
        assert!(answer.headers["www-authenticate"].starts_with("Bearer"));
        let authorization = format!("Bearer {READ}");
        let answer = ask(&at, &format!("GET {path}"), &[("Authorization", &authorization)]).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    assert_eq!(learner.stats().refusals, 9);
}

#[tokio::test]
async fn a_cell_uses_different_tokens_for_its_upstream_and_its_readers() {
    let (store, learner) = learner(serving(Access { read: Some(token(READ)), ..Access::default() })).await;
    store.publish(&name(), 1, model(1, 1000)).unwrap();
    let upstream = [endpoint(&learner)];
    let credentials = Credentials { token: Some(token(READ)), ..Credentials::default() };
    let access = Access { read: Some(token("the-token-of-this-cell")), ..Access::default() };
    let server = ServerOptions { access, ..ServerOptions::default() };
    let options = CellOptions { server, credentials, ..CellOptions::default() };
    let closed = cell::serve(&upstream, &any_port(), options).await.unwrap();
    assert!(is_unauthorized(&get(&endpoint(&closed), showing(READ)).await.unwrap_err()));
    assert_eq!(get(&endpoint(&closed), showing("the-token-of-this-cell")).await.unwrap(), 1);
    // Without the token, the cell receives nothing from upstream.
    let without = cell::serve(&upstream, &any_port(), CellOptions::default()).await.unwrap();
    assert!(get(&endpoint(&without), ClientOptions::default()).await.is_err());
}

/// A CA, and files with certificates that it has issued.
struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(directory.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { directory, issuer: Issuer::new(params, key) }
    }

    fn certificates(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    fn sign(&self, subject: &str, purpose: ExtendedKeyUsagePurpose) -> Identity {
        let mut params = CertificateParams::new(vec![subject.to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |end: &str| self.directory.path().join(format!("{subject}.{end}"));
        std::fs::write(path("pem"), certificate.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        Identity { certificates: path("pem"), key: path("key") }
    }

    fn server(&self, subject: &str) -> Identity {
        self.sign(subject, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn client(&self) -> Identity {
        self.sign("actor", ExtendedKeyUsagePurpose::ClientAuth)
    }
}

fn over_tls(authority: &Path, identity: Option<&Identity>) -> ClientOptions {
    let tls = Some(TlsClient::new(authority, identity).unwrap());
    with(Credentials { tls, ..Credentials::default() })
}

fn https(server: &Server) -> Endpoint {
    format!("https://{}", server.listens()[0]).parse().unwrap()
}

async fn tls_learner(identity: &Identity, client_authority: Option<&Path>) -> Server {
    let tls = Some(TlsServer::new(identity, client_authority).unwrap());
    let (store, server) = learner(serving(Access { tls, ..Access::default() })).await;
    store.publish(&name(), 1, model(1, 3 << 20)).unwrap();
    server
}

#[tokio::test]
async fn models_are_transferred_over_tls_only_from_a_trusted_server() {
    let (own, foreign) = (Authority::new(), Authority::new());
    let server = tls_learner(&own.server("127.0.0.1"), None).await;
    let at = https(&server);
    assert_eq!(get(&at, over_tls(&own.certificates(), None)).await.unwrap(), 1);
    put(&at, 2, &over_tls(&own.certificates(), None)).await.unwrap();
    // Requests fail if the client trusts a different CA, if the certificate is not valid for the host, or if the client
    // does not use TLS.
    let error = get(&at, over_tls(&foreign.certificates(), None)).await.unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    let other = tls_learner(&own.server("learner.example"), None).await;
    let error = get(&https(&other), over_tls(&own.certificates(), None)).await.unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    assert!(get(&endpoint(&server), ClientOptions::default()).await.is_err());
    let error = get(&at, ClientOptions::default()).await.unwrap_err();
    assert!(matches!(error, ModelError::NoTls { .. }), "{error}");
    crate::support::until(async || server.stats().handshakes_failed >= 2).await;
    // A cell uses TLS both to its upstream and to its readers.
    let credentials = over_tls(&own.certificates(), None).credentials;
    let tls = Some(TlsServer::new(&own.server("127.0.0.1"), None).unwrap());
    let options = ServerOptions { access: Access { tls, ..Access::default() }, ..ServerOptions::default() };
    let options = CellOptions { server: options, credentials, ..CellOptions::default() };
    let cell = cell::serve(&[at], &any_port(), options).await.unwrap();
    assert_eq!(get(&https(&cell), over_tls(&own.certificates(), None)).await.unwrap(), 2);
}

#[tokio::test]
async fn only_clients_with_a_certificate_of_the_trusted_ca_are_served() {
    let (own, foreign) = (Authority::new(), Authority::new());
    let server = tls_learner(&own.server("127.0.0.1"), Some(&own.certificates())).await;
    let at = https(&server);
    let client = own.client();
    assert_eq!(get(&at, over_tls(&own.certificates(), Some(&client))).await.unwrap(), 1);
    assert!(get(&at, over_tls(&own.certificates(), None)).await.is_err());
    let stranger = foreign.client();
    assert!(get(&at, over_tls(&own.certificates(), Some(&stranger))).await.is_err());
    assert!(put(&at, 2, &over_tls(&own.certificates(), Some(&stranger))).await.is_err());
    put(&at, 2, &over_tls(&own.certificates(), Some(&client))).await.unwrap();
    crate::support::until(async || server.stats().handshakes_failed == 3).await;
}

#[tokio::test]
async fn invalid_handshake_bytes_close_only_their_connection() {
    let own = Authority::new();
    let server = tls_learner(&own.server("127.0.0.1"), None).await;
    for bytes in [&b"GET /metrics HTTP/1.1\r\n\r\n"[..], b"", &[0x16, 3, 1, 0xff, 0xff], &[0; 1000]] {
        let mut stream = TcpStream::connect(endpoint(&server).to_string()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    assert_eq!(get(&https(&server), over_tls(&own.certificates(), None)).await.unwrap(), 1);
    crate::support::until(async || server.stats().handshakes_failed == 4).await;
}

#[test]
fn errors_name_unusable_credential_files() {
    let own = Authority::new();
    let (first, second) = (own.server("first"), own.server("second"));
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let refused = |certificates: &Path, key: &Path| {
        let identity = Identity { certificates: certificates.to_owned(), key: key.to_owned() };
        TlsServer::new(&identity, None).unwrap_err().to_string()
    };
    let missing = directory.path().join("missing");
    for (error, path) in [
        (refused(&missing, &first.key), &missing),
        (refused(&empty, &first.key), &empty),
        (refused(&first.certificates, &empty), &empty),
        (refused(&first.certificates, &second.key), &first.certificates),
        (TlsClient::new(&empty, None).unwrap_err().to_string(), &empty),
    ] {
        assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
    }
}

#[test]
fn the_program_takes_tokens_and_certificates_from_files() {
    let own = Authority::new();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let (publishers, readers) = (file("publish", PUBLISH), file("read", READ));
    let weights = file("weights", "the weights");
    let (identity, client) = (own.server("127.0.0.1"), own.client());
    let text = |path: &Path| path.display().to_string();
    let ca = text(&own.certificates());
    let program = || std::process::Command::new(env!("CARGO_BIN_EXE_iswitch-models"));
    let mut server = program();
    server.args(["serve", "--listen", "127.0.0.1:0", "--publish-from", "everywhere"]);
    server.args(["--publish-token-file", &publishers, "--read-token-file", &readers]);
    server.args(["--tls-cert", &text(&identity.certificates), "--tls-key", &text(&identity.key)]);
    let mut server = server.args(["--client-ca", &ca]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().unwrap()));
    let first = lines.map_while(Result::ok).next().unwrap();
    let at = format!("https://{}", first.strip_prefix("listening at ").unwrap());
    let run = |arguments: &[&str]| {
        let tls = ["--ca", &ca, "--cert", &text(&client.certificates), "--key", &text(&client.key)];
        program().args(arguments).args(tls).output().unwrap().status.success()
    };
    let publish = ["publish", "--learner", &at, "--name", "ppo", "--version", "1", &weights];
    assert!(!run(&publish));
    assert!(run(&[&publish[..], &["--token-file", &publishers]].concat()));
    let output = text(&directory.path().join("fetched"));
    let fetch = ["fetch", "--from", &at, "--name", "ppo", "--output", &output];
    assert!(!run(&fetch));
    assert!(run(&[&fetch[..], &["--token-file", &readers]].concat()));
    assert_eq!(std::fs::read_to_string(&output).unwrap(), "the weights");
    server.kill().unwrap();
    server.wait().unwrap();
}
