//! `iswitchctl doctor` finds deliberate faults, each in its own namespaces: a worker, a router and a switch.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, PortKind, SOON};
use iswitch_harness::netns::Namespace;
use iswitch_harness::process::Process;
use iswitch_harness::requirements::{is_root, networks_and};
use iswitch_protocol::key_file;
use iswitch_protocol::wire::{AckRepr, Action, ControlBody, ControlPacket, ControlRepr, Status};
use iswitch_socket::{Options, UdpSocket};
use serde_json::Value;

const WORKER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const PORT: u16 = 7711;

/// Worker and switch with a router between them.
struct Testbed {
    worker: Namespace,
    router: Namespace,
    switch: Namespace,
}

impl Testbed {
    fn new() -> Self {
        let testbed = Self {
            worker: Namespace::new("doc-w"),
            router: Namespace::new("doc-r"),
            switch: Namespace::new("doc-s"),
        };
        let ends = [(&testbed.worker, "r1", WORKER, "10.1.0.2"), (&testbed.switch, "r2", SWITCH, "10.2.0.2")];
        for (end, port, address, gateway) in ends {
            testbed.router.ip(&format!(
                "link add {port} type veth peer name e0 netns {}\n\
                 addr add {gateway}/24 dev {port}\nlink set {port} up\n",
                end.name()
            ));
            end.ip(&format!(
                "addr add {address}/24 dev e0\nlink set e0 up\nroute add default via {gateway}\n"
            ));
            // GRO is off by default on veth interfaces, and doctor would report that.
            end.run(["ethtool", "-K", "e0", "gro", "on"]);
        }
        testbed.router.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"]);
        testbed.worker.run(["ping", "-q", "-c", "1", "-w", "5", &SWITCH.to_string()]);
        testbed
    }

    fn daemon(&self, arguments: &[&str]) -> Daemon {
        Daemon::serving(&self.switch, SWITCH, PortKind::Udp, &[], arguments)
    }

    /// Starts `iswitchctl doctor --answer` on the switch, and waits until it is ready.
    fn answerer(&self) -> Process {
        let mut command = self.switch.command(binaries::iswitchctl());
        let mut process =
            Process::spawn("doctor --answer", command.args(["doctor", "--answer", "0.0.0.0:7712"]));
        process.wait_for("answering iswitchctl doctor", SOON);
        process
    }

    fn examine(&self, arguments: &str) -> Findings {
        Findings::of(self.worker.command(binaries::iswitchctl()), arguments)
    }

    fn examine_switch(&self) -> Findings {
        self.examine(&format!("--switch {SWITCH}:{PORT}"))
    }

    fn examine_peer(&self) -> Findings {
        self.examine(&format!("--peer {SWITCH}"))
    }
}

/// Findings of doctor.
#[derive(Debug)]
struct Findings(Vec<Value>);

impl Findings {
    fn of(mut command: std::process::Command, arguments: &str) -> Self {
        // A machine that is busy with other tests answers late.
        command.args(["doctor", "--json"]).args(arguments.split_whitespace());
        if !arguments.contains("--timeout-ms") {
            command.args(["--timeout-ms", "1000"]);
        }
        if !arguments.contains("--recv-buffer-bytes") && !is_root() {
            // This is below the lowest limit that systems set for users other than root.
            command.args(["--recv-buffer-bytes", "200000"]);
        }
        let output = command.output().expect("iswitchctl starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let report: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text:?} {}", String::from_utf8_lossy(&output.stderr)));
        let mut findings = report["findings"].as_array().expect("a list").clone();
        let has_failed = findings.iter().any(|finding| finding["outcome"] == "failed");
        assert_eq!(output.status.code(), Some(i32::from(has_failed)), "{text}");
        // Checks of a daemon that may run on this machine are ignored unless its socket is named.
        let is_asked = |check: &str| arguments.contains("--socket") || !check.starts_with("daemon");
        findings.retain(|finding| finding["check"].as_str().is_some_and(is_asked));
        let wrong = |finding: &&Value| finding["outcome"] == "failed" || finding["outcome"] == "warning";
        for finding in findings.iter().filter(wrong) {
            assert!(finding["fix"].as_str().is_some_and(|fix| fix.len() > 10), "{finding} has no fix");
        }
        Self(findings)
    }

    /// Returns the names of the failed checks, except those of the CPU settings, which depend on the machine.
    fn wrong(&self) -> Vec<&str> {
        let wrong =
            self.0.iter().filter(|finding| finding["outcome"] == "failed" || finding["outcome"] == "warning");
        wrong
            .filter_map(|finding| finding["check"].as_str())
            .filter(|check| *check != "cpu-governor")
            .collect()
    }

    /// Checks that exactly these checks failed, the first of them with a text that contains `words`.
    fn are(&self, checks: &[&str], words: &str) {
        assert_eq!(self.wrong(), checks, "{self:#?}");
        let detail = |finding: &&Value| finding["check"] == checks[0] && finding["outcome"] != "ok";
        let detail =
            self.0.iter().find(detail).map_or("", |finding| finding["detail"].as_str().expect("text"));
        assert!(detail.contains(words), "{words:?} is not in {detail:?}");
    }
}

fn may_run(test: &str) -> bool {
    networks_and(test, &["ethtool", "setpriv"])
}

/// Adds a packet filter rule to a machine.
fn filter(machine: &Namespace, hook: &str, priority: i32, rule: &str) {
    machine.nft(&format!(
        "table ip t {{\nchain {hook} {{\ntype filter hook {hook} priority {priority}\n{rule}\n}}\n}}\n"
    ));
}

/// Makes a machine set the DSCP of packets to or from the worker to zero.
fn bleach(machine: &Namespace, matching: &str) {
    filter(machine, "prerouting", -300, &format!("{matching} ip dscp set cs0"));
}

#[test]
fn a_working_setup_has_no_problems() {
    if !may_run("a_working_setup_has_no_problems") {
        return;
    }
    let testbed = Testbed::new();
    let _answerer = testbed.answerer();
    for arguments in [&[][..], &["--ordered"]] {
        let daemon = testbed.daemon(arguments);
        let findings = testbed.examine(&format!("--switch {SWITCH}:{PORT} --peer {SWITCH}"));
        assert_eq!(findings.wrong(), [""; 0], "{findings:#?}");
        assert!(findings.0.len() >= 17, "{findings:#?}");
        // On the switch's machine, doctor also checks the daemon.
        let socket = daemon.control_socket();
        let local = Findings::of(
            testbed.switch.command(binaries::iswitchctl()),
            &format!("--socket {}", socket.display()),
        );
        assert_eq!(local.wrong(), [""; 0], "{local:#?}");
        // The requests of doctor must not appear as refused Joins from workers.
        assert_eq!(daemon.drops("join_refused"), 0);
        let log = daemon.stop().stderr;
        assert!(!log.contains("refused"), "{log}");
    }
}

#[test]
fn a_missing_daemon_is_detected() {
    if !may_run("a_missing_daemon_is_detected") {
        return;
    }
    let testbed = Testbed::new();
    testbed.examine_switch().are(&["reachable"], "no program listens on UDP");
    testbed.examine_peer().are(&["peer-reachable"], "no program listens on UDP");
    let socket = "--socket /nonexistent/iswitchd.sock";
    testbed.examine(socket).are(&["daemon"], "does not answer");
}

#[test]
fn a_firewall_on_the_path_is_detected() {
    if !may_run("a_firewall_on_the_path_is_detected") {
        return;
    }
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    filter(&testbed.router, "forward", 0, "udp dport 7711 drop");
    testbed.examine_switch().are(&["reachable"], "does not answer");
    daemon.stop();
}

#[test]
fn a_firewall_on_the_local_machine_is_detected() {
    if !may_run("a_firewall_on_the_local_machine_is_detected") {
        return;
    }
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    filter(&testbed.worker, "output", 0, "udp dport 7711 drop");
    testbed.examine_switch().are(&["reachable"], "a firewall on this machine blocks the request");
    daemon.stop();
}

#[test]
fn a_missing_route_and_a_down_interface_are_detected() {
    if !may_run("a_missing_route_and_a_down_interface_are_detected") {
        return;
    }
    let testbed = Testbed::new();
    testbed.worker.ip("route del default\n");
    testbed.examine_switch().are(&["reachable"], "no route to 10.2.0.1:7711");
    testbed.worker.ip("link set e0 down\n");
    testbed.examine("--interface e0").are(&["interface"], "e0 is down");
    testbed.examine("--interface e7").are(&["interface"], "there is no interface e7");
    testbed.worker.ip("link set e0 up\n");
    testbed.router.ip("link set r1 down\n");
    testbed.examine("--interface e0").are(&["interface"], "has no carrier");
}

#[test]
fn a_small_mtu_is_detected_on_any_hop() {
    if !may_run("a_small_mtu_is_detected_on_any_hop") {
        return;
    }
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    let _answerer = testbed.answerer();
    testbed.router.ip("link set r2 mtu 1400\n");
    testbed.examine_switch().are(&["path-mtu"], "the path MTU is 1400 bytes, expected at least 1500");
    testbed.worker.ip("link set e0 mtu 1300\n");
    testbed.examine_switch().are(&["interface-mtu", "path-mtu"], "e0 has an MTU of 1300 bytes");
    daemon.stop();
}

#[test]
fn a_path_that_drops_long_packets_is_detected_and_measured() {
    if !may_run("a_path_that_drops_long_packets_is_detected_and_measured") {
        return;
    }
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    let _answerer = testbed.answerer();
    testbed.router.ip("link set r2 mtu 1400\n");
    filter(&testbed.router, "output", 0, "icmp type destination-unreachable drop");
    let patience = "--timeout-ms 200";
    let findings = testbed.examine(&format!("--switch {SWITCH}:{PORT} {patience}"));
    findings.are(&["path-mtu"], "packets longer than 1400 bytes are lost without an ICMP error");
    daemon.stop();
    // The limit is for one direction only; an interface MTU would apply to both.
    testbed.router.ip("link set r2 mtu 1500\nroute change 10.1.0.0/24 dev r1 mtu lock 1400\n");
    let findings = testbed.examine(&format!("--peer {SWITCH} {patience}"));
    findings.are(&["peer-mtu-back"], "packets longer than 1400 bytes are lost without an ICMP error");
}

#[test]
fn a_cleared_tos_is_detected_in_either_direction() {
    if !may_run("a_cleared_tos_is_detected_in_either_direction") {
        return;
    }
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    let _answerer = testbed.answerer();
    bleach(&testbed.router, "ip saddr 10.2.0.1");
    testbed.examine_switch().are(&["tos-control-back"], "answers sent with ToS 0x0c arrive with ToS 0x00");
    testbed
        .examine_peer()
        .are(&["peer-control-back", "peer-data-back"], "sent with ToS 0x0c arrive with ToS 0x00");
    testbed.router.run(["nft", "flush", "ruleset"]);
    bleach(&testbed.router, "ip saddr 10.1.0.1");
    testbed.examine_switch().are(&["reachable"], "does not answer");
    testbed.examine_peer().are(
        &["peer-control-there", "peer-data-there"],
        "sent with ToS 0x0c arrive at the peer with ToS 0x00",
    );
    // The daemon has noticed the fault too.
    let socket = format!("--socket {}", daemon.control_socket().display());
    Findings::of(testbed.switch.command(binaries::iswitchctl()), &socket)
        .are(&["daemon-untagged"], "without an iSwitch ToS");
    daemon.stop();
}

#[test]
fn a_path_that_drops_the_data_tos_is_detected() {
    if !may_run("a_path_that_drops_the_data_tos_is_detected") {
        return;
    }
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    let _answerer = testbed.answerer();
    filter(&testbed.router, "forward", 0, "ip dscp 0x07 drop");
    testbed.examine_switch().are(&["tos-data-there"], "packets with the data ToS 0x1c are not");
    testbed.examine_peer().are(&["peer-data-there"], "packets sent with ToS 0x1c are not answered");
    daemon.stop();
}

#[test]
fn mismatched_keys_are_detected() {
    if !may_run("mismatched_keys_are_detected") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| directory.path().join(name));
    [&ours, &theirs].into_iter().for_each(|path| key_file::create(path).unwrap());
    let testbed = Testbed::new();
    let examine = |key: Option<&Path>| {
        let key = key.map_or(String::new(), |path| format!(" --key-file {}", path.display()));
        testbed.examine(&format!("--switch {SWITCH}:{PORT}{key}"))
    };
    let keyed = testbed.daemon(&["--key-file", theirs.to_str().unwrap()]);
    assert_eq!(examine(Some(&theirs)).wrong(), [""; 0]);
    examine(Some(&ours)).are(&["key"], "the switch's key for job 0 differs from the key in --key-file");
    examine(None).are(&["key"], "no --key-file was given here");
    keyed.stop();
    let open = testbed.daemon(&[]);
    examine(Some(&ours)).are(&["key"], "has no key on the switch");
    open.stop();
}

/// Answers as a switch of a later version, which refuses every packet because of its version.
fn refuse_version(socket: &UdpSocket, stop: &AtomicBool) {
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        if !socket.wait_readable(Some(Duration::from_millis(20))).unwrap() {
            continue;
        }
        let received = socket.recv(&mut buffer).unwrap();
        let request = ControlPacket::new_checked(&buffer[..received.len]).unwrap().request();
        let ack = AckRepr {
            boot: 1,
            lease_ms: 1,
            expected: 2,
            ..AckRepr::bare(Action::Join, Status::WrongVersion)
        };
        let repr = ControlRepr { job: 0, request, body: ControlBody::Ack(ack) };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes);
        socket.send(0x0c, Some(received.source), None, &bytes, bytes.len()).unwrap();
    }
}

#[test]
fn a_switch_of_another_version_is_detected() {
    if !may_run("a_switch_of_another_version_is_detected") {
        return;
    }
    let testbed = Testbed::new();
    let address = SocketAddrV4::new(SWITCH, PORT);
    let socket = testbed.switch.enter(|| UdpSocket::bind(address, &Options::default()).unwrap());
    let stop = AtomicBool::new(false);
    let findings = std::thread::scope(|scope| {
        scope.spawn(|| refuse_version(&socket, &stop));
        let findings = testbed.examine_switch();
        stop.store(true, Ordering::Relaxed);
        findings
    });
    findings.are(&["version"], "uses protocol version 2; this machine uses version 1");
}

#[test]
fn a_too_small_receive_buffer_is_detected() {
    if !may_run("a_too_small_receive_buffer_is_detected") {
        return;
    }
    let testbed = Testbed::new();
    // Root gets any buffer that it requests. Without root's capabilities, the limit of the system applies, which is
    // never that high.
    let mut command = testbed.worker.command("setpriv");
    command.args(["--bounding-set", "-all", "--inh-caps", "-all", "--ambient-caps", "-all"]);
    if is_root() {
        command.args(["--reuid", "65534", "--clear-groups"]);
    }
    command.arg(binaries::iswitchctl());
    Findings::of(command, "--recv-buffer-bytes 1000000000").are(&["receive-buffer"], "expected 1000000000");
}

#[test]
fn disabled_offloads_are_detected() {
    if !may_run("disabled_offloads_are_detected") {
        return;
    }
    let testbed = Testbed::new();
    testbed.worker.run(["ethtool", "-K", "e0", "gro", "off", "tx", "off"]);
    testbed.examine("--interface e0").are(&["offloads"], "e0 has offloads turned off (gro");
}

#[test]
fn packet_loss_on_the_path_is_detected() {
    if !may_run("packet_loss_on_the_path_is_detected") {
        return;
    }
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    filter(&testbed.router, "forward", 0, "numgen inc mod 4 0 drop");
    let findings = testbed.examine(&format!("--switch {SWITCH}:{PORT} --timeout-ms 300"));
    findings.are(&["loss"], "requests unanswered");
    daemon.stop();
}
