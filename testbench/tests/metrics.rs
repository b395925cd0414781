//! What Prometheus scrapes from a running daemon, checked with its own tool.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use iswitch_testbench::cluster::{Daemon, Group, SOON};
use iswitch_testbench::process::Signal;
use iswitch_testbench::requirements::{alone, programs};

/// Where the daemon says that its metrics are.
fn metrics_address(daemon: &Daemon) -> SocketAddr {
    let log = daemon.process.stderr();
    let line = log.lines().find(|line| line.contains("metrics for Prometheus")).expect("it says where");
    let (_, address) = line.split_once("address=").expect("it says where");
    address.trim().parse().expect("an address")
}

fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("the listener is there");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: iswitchd\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, page) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    page.to_owned()
}

/// The values of all samples of a metric.
fn values(page: &str, metric: &str) -> Vec<f64> {
    let of_metric = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(metric));
    of_metric.map(|line| line.rsplit(' ').next().expect("a value").parse().expect("a number")).collect()
}

/// What `promtool check metrics` has to say.
fn lint(page: &str) -> String {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    promtool.stdin.take().expect("it is piped").write_all(page.as_bytes()).expect("promtool reads");
    let output = promtool.wait_with_output().expect("promtool ends");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn the_page_shows_what_the_daemon_does_and_promtool_finds_no_fault() {
    let test = "the_page_shows_what_the_daemon_does_and_promtool_finds_no_fault";
    if !programs(test, &["setpriv", "promtool"]) {
        return;
    }
    let _alone = alone();
    let arguments = ["--metrics", "127.0.0.1:0", "--slow-ms", "200", "--lease-ms", "60000"];
    let mut daemon = Daemon::on_loopback(&arguments);
    let address = metrics_address(&daemon);
    let idle = scrape(address);
    assert_eq!(values(&idle, "iswitch_jobs"), [0.0]);
    let mut group = Group::here(3, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    group.signal(1, Signal::STOP);
    daemon.process.wait_for("is waiting for member", SOON);
    let page = scrape(address);
    assert_eq!(values(&page, "iswitch_jobs"), [1.0]);
    assert_eq!(values(&page, "iswitch_job_members"), [3.0]);
    assert_eq!(values(&page, "iswitch_job_awaited_members"), [1.0]);
    assert!(values(&page, "iswitch_job_waiting_seconds")[0] >= 0.2, "{page}");
    assert!(values(&page, "iswitch_member_missing_segments")[0] > 0.0, "{page}");
    assert_eq!(values(&page, "iswitch_member_silent_seconds").len(), 3);
    let results = values(&page, "iswitch_results_total")[0];
    assert!(results > 0.0 && results <= daemon.results() as f64, "{page}");
    assert!(values(&page, "iswitch_port_received_bytes_total")[0] > 0.0, "{page}");
    for page in [idle, page] {
        assert_eq!(lint(&page), "", "{page}");
    }
    drop(group);
    daemon.stop();
}
