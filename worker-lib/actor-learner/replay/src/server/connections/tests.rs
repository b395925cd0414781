use http_body_util::Empty;
use tokio::io::{AsyncReadExt as _, duplex};

use super::*;
use crate::server::ShardConfig;
use crate::table::TableConfig;

const PIPE_BYTES: usize = 1 << 16;

fn connections(connections_max: usize) -> Connections {
    let tables = vec![TableConfig::uniform("t", 5, u64::MAX)];
    let config = ShardConfig { tables, connections_max, ..ShardConfig::default() };
    Connections::new(&Arc::new(Shard::open(config).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn silent_connections_free_their_slots() {
    let connections = connections(2);
    let mut clients = Vec::new();
    for _ in 0..2 {
        let (client, server) = duplex(PIPE_BYTES);
        connections.start(server, connections.place().await.unwrap());
        clients.push(client);
    }
    let began = Instant::now();
    let _place = connections.place().await.unwrap();
    // The test's clock is virtual: it advances only while all tasks wait.
    assert!(began.elapsed() >= Duration::from_millis(FIRST_REQUEST_MS));
    for mut client in clients {
        // The server sends its HTTP/2 settings and then closes the connection.
        client.read_to_end(&mut Vec::new()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_a_timeout() {
    let connections = connections(1);
    let (client, server) = duplex(PIPE_BYTES);
    connections.start(server, connections.place().await.unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client)).await.unwrap();
    let ended = tokio::spawn(connection);
    let began = Instant::now();
    let idle = Duration::from_millis(IDLE_MS);
    for _ in 0..3 {
        let request = Request::post("http://shard/anything").body(Empty::<bytes::Bytes>::new()).unwrap();
        sender.send_request(request).await.unwrap();
        tokio::time::sleep(idle * 2 / 3).await;
    }
    ended.await.unwrap().unwrap();
    assert!(began.elapsed() >= idle * 7 / 3);
    // The connection has released its slot.
    drop(connections.place().await);
}

#[cfg(feature = "tls")]
#[tokio::test(start_paused = true)]
async fn silent_connections_without_a_tls_handshake_free_their_slots() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let [cert, key] = ["cert", "key"].map(|name| folder.path().join(name));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Some(crate::server::ServerTls::read(&cert, &key, None).unwrap());
    let tables = vec![TableConfig::uniform("t", 5, u64::MAX)];
    let config = ShardConfig { tables, connections_max: 1, tls, ..ShardConfig::default() };
    let connections = Arc::new(Connections::new(&Arc::new(Shard::open(config).unwrap())));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    connections.start_tcp(server, connections.place().await.unwrap());
    drop(connections.place().await.unwrap());
    assert_eq!(client.read_to_end(&mut Vec::new()).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_silent_connections() {
    let connections = connections(3);
    let (_client, server) = duplex(PIPE_BYTES);
    connections.start(server, connections.place().await.unwrap());
    let began = Instant::now();
    connections.close().await;
    assert!(began.elapsed() < Duration::from_millis(FIRST_REQUEST_MS));
}
