//! Tests that check the metrics page of a running daemon with promtool, Prometheus's command-line tool.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use iswitch_harness::cluster::{Daemon, Group, SOON};
use iswitch_harness::process::Signal;
use iswitch_harness::requirements::{programs, together};

/// Returns the address of the metrics page, as logged by the daemon.
fn metrics_address(daemon: &Daemon) -> SocketAddr {
    let log = daemon.wait_for_log("serving Prometheus metrics");
    let line = log.lines().find(|line| line.contains("serving Prometheus metrics")).expect("checked above");
    let (_, address) = line.split_once("address=").expect("the log must state the address");
    address.trim().parse().expect("an address")
}

fn scrape(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("the listener must accept");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: iswitchd\r\n\r\n").expect("the daemon must read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the daemon must answer");
    let (head, page) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    page.to_owned()
}

/// Returns the values of all samples of a metric.
fn values(page: &str, metric: &str) -> Vec<f64> {
    let of_metric = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(metric));
    of_metric.map(|line| line.rsplit(' ').next().expect("a value").parse().expect("a number")).collect()
}

/// Returns the output of `promtool check metrics` for the page.
fn lint(page: &str) -> String {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    promtool.stdin.take().expect("a piped input").write_all(page.as_bytes()).expect("promtool reads");
    let output = promtool.wait_with_output().expect("promtool ends");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn the_metrics_page_reflects_the_daemon_and_passes_promtool() {
    let test = "the_metrics_page_reflects_the_daemon_and_passes_promtool";
    if !programs(test, &["setpriv", "promtool"]) {
        return;
    }
    let _together = together();
    let arguments = ["--metrics", "127.0.0.1:0", "--slow-ms", "200", "--lease-ms", "60000"];
    let mut daemon = Daemon::on_loopback(&arguments);
    let address = metrics_address(&daemon);
    let idle = scrape(address);
    assert_eq!(values(&idle, "iswitch_jobs"), [0.0]);
    let mut group = Group::here(3, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    group.signal(1, Signal::STOP);
    daemon.process.wait_for("has been waiting for member", SOON);
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
    let rounds = values(&page, "iswitch_job_round_seconds_count")[0];
    assert!(rounds > 0.0 && values(&page, "iswitch_job_round_seconds_sum")[0] > 0.0, "{page}");
    let buckets = values(&page, "iswitch_job_round_seconds_bucket");
    assert!(buckets.is_sorted() && buckets.last() == Some(&rounds), "{page}");
    assert!(
        values(&page, "iswitch_limit_used").iter().zip(values(&page, "iswitch_limit")).all(|(a, b)| *a <= b)
    );
    // The files that describe the process are opened before the sandbox is entered.
    for name in ["process_open_fds", "process_resident_memory_bytes", "process_cpu_seconds_total"] {
        assert!(values(&page, name)[0] > 0.0, "{name}");
    }
    for page in [idle, page] {
        assert_eq!(lint(&page), "", "{page}");
    }
    drop(group);
    daemon.stop();
}

/// Returns the queries of the Grafana dashboard, with the dashboard's variables replaced by values.
fn queries() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/grafana/iswitch.json");
    let text = std::fs::read_to_string(path).expect("the dashboard must exist");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("the dashboard must be JSON");
    let panels = dashboard["panels"].as_array().expect("the dashboard must have panels");
    let ids: std::collections::BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel must have a unique number");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
    let variables = [("$__rate_interval", "1m"), ("$instance", ".*"), ("$job", ".*")];
    let fill =
        |query: &str| variables.iter().fold(query.to_owned(), |query, (from, to)| query.replace(from, to));
    queries.map(fill).collect()
}

#[test]
fn promtool_accepts_every_query_of_the_dashboard() {
    let test = "promtool_accepts_every_query_of_the_dashboard";
    if !programs(test, &["promtool"]) {
        return;
    }
    let queries = queries();
    assert!(queries.len() >= 20, "{queries:?}");
    let rules: Vec<_> = queries
        .iter()
        .enumerate()
        .map(|(at, query)| serde_json::json!({ "record": format!("query:{at}"), "expr": query }))
        .collect();
    let directory = tempfile::tempdir().expect("a directory");
    // JSON is valid YAML.
    let file = directory.path().join("rules.yml");
    let text = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string();
    std::fs::write(&file, text).expect("the file must be writable");
    let output =
        Command::new("promtool").args(["check", "rules"]).arg(&file).output().expect("promtool starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains(&format!("{} rules found", queries.len())), "{said}");
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    let test = "promtool_accepts_the_rules_and_their_tests_pass";
    if !programs(test, &["promtool"]) {
        return;
    }
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/prometheus");
    let read = |name: &str| std::fs::read_to_string(format!("{directory}/{name}")).expect(name);
    for (action, file) in [("check", "iswitch.rules.yml"), ("test", "iswitch.rules.test.yml")] {
        let mut promtool = Command::new("promtool");
        let output =
            promtool.args([action, "rules", file]).current_dir(directory).output().expect("promtool starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains("SUCCESS"), "{said}");
    }
    // Each alert and each recorded series has a test.
    let (rules, tests) = (read("iswitch.rules.yml"), read("iswitch.rules.test.yml"));
    let named = |line: &str| {
        line.trim()
            .strip_prefix("- ")?
            .split_once(": ")
            .map(|(kind, name)| (kind.to_owned(), name.to_owned()))
    };
    let names: Vec<_> =
        rules.lines().filter_map(named).filter(|(kind, _)| kind == "alert" || kind == "record").collect();
    assert!(names.len() >= 15, "{names:?}");
    for (_, name) in names {
        assert!(tests.contains(&name), "{name} has no test");
    }
}
