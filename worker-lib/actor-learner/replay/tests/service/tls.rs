//! Tests of connections with TLS, and of clients with certificates.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iswitch_replay::client::{ClientConfig, ClientError, ClientTls, ReplayClient};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::support::{ONCE, Process, drain, item};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Issues a certificate for a name, and returns it with its key.
fn identity(authority: &Authority, name: &str) -> (Vec<u8>, Vec<u8>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate.pem().into_bytes(), key.serialize_pem().into_bytes())
}

fn file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn client(url: &str, tls: Option<ClientTls>) -> ReplayClient {
    let patience = Duration::from_millis(300);
    ReplayClient::new(ClientConfig { tls, patience, failover_after: patience, ..ClientConfig::new([url]) })
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_with_a_certificate_of_the_trusted_ca_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (authority(), authority());
    let (cert, key) = identity(&ours, "localhost");
    let cert = file(folder.path(), "cert.pem", &cert);
    let key = file(folder.path(), "key.pem", &key);
    let ca = file(folder.path(), "ca.pem", ours.pem().as_bytes());
    let arguments = [
        ["--table", ONCE],
        ["--listen", "127.0.0.1:0"],
        ["--tls-cert", cert.to_str().unwrap()],
        ["--tls-key", key.to_str().unwrap()],
        ["--tls-client-ca", ca.to_str().unwrap()],
    ];
    let shard = Process::start(&folder.path().join("socket"), &arguments.concat());
    let listening = shard.ready["listening"].as_array().unwrap();
    let tcp =
        listening.iter().filter_map(|address| address.as_str()).find(|address| address.starts_with("127"));
    let port = tcp.unwrap().rsplit(':').next().unwrap();
    let url = format!("https://localhost:{port}");

    let ca = |authority: &Authority| authority.pem().into_bytes();
    let known = ClientTls { ca: ca(&ours), identity: Some(identity(&ours, "actor")) };
    let refused = [
        ("no certificate", ClientTls { ca: ca(&ours), identity: None }),
        ("another's", ClientTls { ca: ca(&ours), identity: Some(identity(&other, "actor")) }),
        ("a server it does not know", ClientTls { ca: ca(&other), identity: Some(identity(&ours, "actor")) }),
    ];
    for (what, tls) in refused {
        let client = client(&url, Some(tls));
        let inserted = client.writer("t", 1).insert(item(1, 0)).await;
        assert!(inserted.is_err(), "{what}: {inserted:?}");
    }
    let unknown = ClientTls { ca: ca(&other), identity: None };
    let error = client(&url, Some(unknown)).writer("t", 1).insert(item(1, 0)).await.unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    let plain = client(&format!("http://localhost:{port}"), None);
    assert!(plain.writer("t", 1).insert(item(1, 0)).await.is_err());

    let known = client(&url, Some(known));
    known.writer("t", 1).insert(item(1, 5)).await.unwrap();
    let drawn = drain(&known).await;
    assert_eq!((drawn.len(), &drawn[0].payload), (1, &crate::support::payload(1, 5)));
}

#[tokio::test]
async fn an_https_address_without_valid_certificates_is_refused() {
    let config = ClientConfig::new(["https://localhost:1"]);
    let error = ReplayClient::new(config.clone()).err().unwrap();
    assert!(matches!(error, ClientError::Tls { .. }), "{error}");
    let tls = Some(ClientTls { ca: b"no certificate".to_vec(), identity: Some((vec![], vec![])) });
    let error = ReplayClient::new(ClientConfig { tls, ..config }).err().unwrap();
    assert!(matches!(error, ClientError::Tls { .. }), "{error}");
}

#[test]
fn invalid_certificate_files_are_refused_with_their_path() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = identity(&authority(), "localhost");
    let (_, other_key) = identity(&authority(), "localhost");
    let cert = file(folder.path(), "cert.pem", &cert);
    let key = file(folder.path(), "key.pem", &key);
    let other_key = file(folder.path(), "other.pem", &other_key);
    let missing = folder.path().join("missing");
    let refusals = [
        ([&missing, &key], "tls_cert is "),
        ([&key, &key], "tls_cert is "),
        ([&cert, &cert], "tls_key is "),
        ([&cert, &other_key], "tls_cert and tls_key cannot be used together"),
    ];
    for ([cert, key], text) in refusals {
        let output = Command::new(env!("CARGO_BIN_EXE_replayd"))
            .args(["--table", ONCE, "--listen", "127.0.0.1:0"])
            .args(["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()])
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(text), "{errors}");
    }
}
