//! Clients of a daemon that keep their connections open without completing a request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::testbed::{Testbed, undisturbed};
use super::{Effort, Verdict};
use iswitch_harness::netns::SWITCH_ADDRESS;

const METRICS_PORT: u16 = 7790;
/// Number of connections of each kind that the test opens. It exceeds the number of connections that a daemon serves.
const CONNECTIONS: usize = 400;
/// Time that a client waits for an answer after the silent clients have disconnected.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn silent(effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    let metrics = SocketAddr::from((SWITCH_ADDRESS, METRICS_PORT));
    let daemon = testbed.daemon(&["--metrics", &metrics.to_string()]);
    let workers = testbed.workers(&daemon, "");
    let control = daemon.control_socket();
    let silent = testbed.attacker().enter(|| {
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS {
            // Once the daemon has reached its maximum number of connections, it may refuse others.
            if let Ok(mut stream) = TcpStream::connect_timeout(&metrics, Duration::from_millis(100)) {
                let _ = stream.write_all(b"GET /met");
                silent.push(stream);
            }
        }
        silent
    });
    let questions: Vec<_> = (0..CONNECTIONS).filter_map(|_| half_a_question(&control)).collect();
    let rounds = undisturbed(workers, effort)?;
    let open = (silent.len(), questions.len());
    drop((silent, questions));
    let answered = testbed.attacker().enter(|| wait_for_page(metrics));
    // This call panics if the daemon no longer answers on its control socket.
    daemon.counters();
    daemon.stop();
    answered.map(|()| {
        format!(
            "{} silent connections to the metrics port and {} to the control socket during {rounds} rounds",
            open.0, open.1
        )
    })
}

fn half_a_question(path: &std::path::Path) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(path).ok()?;
    stream.set_nonblocking(true).ok()?;
    let _ = stream.write_all(b"stat");
    Some(stream)
}

fn wait_for_page(address: SocketAddr) -> Result<(), String> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if page(address).is_ok_and(|page| page.contains("iswitch_jobs")) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err("metrics are no longer served".to_owned())
}

fn page(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}
