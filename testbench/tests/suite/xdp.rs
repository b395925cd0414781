//! Tests of the daemon on AF_XDP ports, between workers in network namespaces. Packets are received in the driver of
//! veth or in the kernel's generic receive path. Needs root and a kernel with AF_XDP sockets.

use std::time::Duration;

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, costs, times, total};
use iswitch_harness::faults::{Faults, complete_checksums, hits};
use iswitch_harness::netns::{Namespace, SWITCH_ADDRESS, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::process::{Finished, Process, Signal};
use iswitch_harness::requirements::{report, root_xdp_and, together};
use iswitch_harness::scratch;
use iswitch_harness::tree::{Tree, TreeJob};
use iswitch_harness::wait;
use iswitch_simulation::network::{LinkCounters, LinkModel};
use iswitch_testbench::wire_relay::{Relayed, WireRelay};

/// Number of floats in the paper's largest model (6.4 MB).
const LARGE: u32 = 1_687_206;
const WORKERS: u64 = 4;
/// Buffer that is small enough for users other than root to lock in memory.
const SMALL_BUFFER: &str = "--recv-buffer-bytes=1048576";

/// Both kinds of AF_XDP port, each with the option of its workers and the text that describes it. The generic path does
/// not split the super-frames of veth, so its workers disable offloads.
const KINDS: [(PortKind, &str, &str); 2] = [
    (PortKind::Xdp, "", "xdp driver copy, queues: 1"),
    (PortKind::XdpGeneric, "--no-offload", "xdp generic copy, queues: 1"),
];

/// Returns whether an interface of a namespace has an XDP program.
fn has_program(namespace: &Namespace, interface: &str) -> bool {
    let text = namespace.run(["ip", "-json", "-details", "link", "show", "dev", interface]);
    let links: serde_json::Value = serde_json::from_str(&text).expect("ip prints JSON");
    links[0].get("xdp").is_some()
}

/// Runs a daemon that must fail on startup, and returns its output.
fn refused(namespace: &Namespace, port: &str) -> Finished {
    let mut command = namespace.command(binaries::iswitchd());
    let directory = scratch::directory();
    command.args(["--port", port, "--control-socket"]).arg(directory.path().join("control"));
    let finished = Process::spawn("refused iswitchd", &mut command).wait(SOON);
    assert!(!finished.status.success(), "{finished:?}");
    finished
}

#[test]
fn vectors_are_exact_in_both_modes() {
    if !root_xdp_and("vectors_are_exact_in_both_modes", &[]) {
        return;
    }
    let _together = together();
    for (kind, plain, mode) in KINDS {
        let star = Star::new(StarOptions::default());
        let daemon = Daemon::in_star(&star, kind, &[]);
        assert_eq!(daemon.status()["ports"][0]["mode"], mode);
        assert_eq!(star.tables(), 0, "no ingress rule may be created");
        for (floats, rounds) in [(10_119, 200), (LARGE, 10)] {
            let arguments = format!("--floats {floats} --rounds {rounds} {plain}");
            let results = Group::in_star(&star, daemon.address(), &arguments).results(3 * SOON);
            assert_eq!(total(&results, "rounds"), WORKERS * rounds);
            report(&format!("{mode}: 4 workers, {floats} floats: {}", times(&results)));
        }
        assert_eq!(daemon.drops("bad_checksum"), 0);
        daemon.stop();
    }
}

#[test]
fn several_queues_are_served() {
    if !root_xdp_and("several_queues_are_served", &["ethtool"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    for (worker, namespace) in star.workers.iter().enumerate() {
        // There must be as many receive queues as the other end has send queues.
        for (namespace, interface) in [(&star.switch, Star::port(worker)), (namespace, "e0".to_owned())] {
            namespace.run(["ethtool", "-L", &interface, "rx", "2", "tx", "2"]);
        }
    }
    let daemon = Daemon::in_star(&star, PortKind::Xdp, &[]);
    assert_eq!(daemon.status()["ports"][0]["mode"], "xdp driver copy, queues: 2");
    let results = Group::in_star(&star, daemon.address(), "--rounds 200").results(SOON);
    assert_eq!(total(&results, "rounds"), WORKERS * 200);
    daemon.stop();
}

#[test]
fn loss_and_corruption_change_no_sum() {
    if !root_xdp_and("loss_and_corruption_change_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    for (kind, _, mode) in KINDS {
        let star = Star::new(StarOptions::default());
        let daemon = Daemon::in_star(&star, kind, &[]);
        let faults = Faults { loss_permille: 10, duplication_permille: 20, corruption_permille: 20 };
        for worker in &star.workers {
            complete_checksums(worker);
            faults.inject(worker);
        }
        let results = Group::in_star(&star, daemon.address(), "--rounds 200 --no-offload").results(2 * SOON);
        assert_eq!(total(&results, "rounds"), WORKERS * 200);
        let corrupted: u64 = star.workers.iter().map(|worker| hits(worker).corrupted).sum();
        let bad_checksums = daemon.drops("bad_checksum");
        assert!(corrupted > 0 && bad_checksums > 0, "{corrupted} changed, {bad_checksums} dropped");
        report(&format!("{mode}, loss and corruption: {}", times(&results)));
        daemon.stop();
    }
}

#[test]
fn a_faulty_network_changes_no_sum() {
    if !root_xdp_and("a_faulty_network_changes_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let relays: Vec<_> = (0..star.workers.len())
        .map(|at| WireRelay::insert(&star.cable(at), LinkModel::ALL_FAULTS, at as u64 + 1))
        .collect();
    let daemon = Daemon::in_star(&star, PortKind::Xdp, &[]);
    let results = Group::in_star(&star, daemon.address(), "--rounds 50").results(2 * SOON);
    assert_eq!(total(&results, "rounds"), WORKERS * 50);
    let relayed: Vec<Relayed> = relays.iter().flat_map(|relay| [relay.to_switch(), relay.to_end()]).collect();
    let is_hit = |relayed: &Relayed| {
        let LinkCounters { lost, duplicated, corrupted, .. } = relayed.link;
        [lost, duplicated, corrupted, relayed.overtaken].into_iter().all(|count| count > 0)
    };
    assert!(relayed.iter().all(is_hit), "{relayed:?}");
    report(&format!("AF_XDP, 5 % each lost, duplicated, corrupted, 0.1 to 2.1 ms: {}", times(&results)));
    daemon.stop();
}

#[test]
fn nine_workers_below_two_levels_of_switches_get_exact_sums() {
    if !root_xdp_and("nine_workers_below_two_levels_of_switches_get_exact_sums", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&[4, 5]);
    let job = TreeJob::start(&tree, PortKind::Xdp, &[], "--floats 100000 --rounds 30");
    let results = job.workers.results(3 * SOON);
    assert_eq!(total(&results, "rounds"), 9 * 30);
    report(&format!("two levels, AF_XDP: {}", times(&results)));
    job.racks.into_iter().for_each(|rack| drop(rack.stop()));
    job.root.stop();
}

/// nftables rules that count the iSwitch packets that reach the bridge or the IP stack behind it.
const LEAKS: &str = "
table bridge leaks {
    chain seen {
        type filter hook prerouting priority -300
        ip dscp { 3, 7 } counter
    }
}
table ip leaks {
    chain seen {
        type filter hook prerouting priority -300
        ip dscp { 3, 7 } counter
    }
}
";

#[test]
fn ordinary_traffic_continues_and_tagged_frames_do_not_leak() {
    if !root_xdp_and("ordinary_traffic_continues_and_tagged_frames_do_not_leak", &["iperf3"]) {
        return;
    }
    let _together = together();
    for (kind, plain, mode) in KINDS {
        let star = Star::new(StarOptions::default());
        star.switch.nft(LEAKS);
        // One packet that is not UDP shows that both counters work.
        star.workers[0].run(["ping", "-q", "-Q", "0x1c", "-c", "1", &SWITCH_ADDRESS.to_string()]);
        let daemon = Daemon::in_star(&star, kind, &[]);
        let arguments = format!("--rounds 1000000 --seconds 4 {plain}");
        let group = Group::in_star(&star, daemon.address(), &arguments);
        let peer = Star::worker_address(3).to_string();
        let ping = star.workers[2].spawn(["ping", "-q", "-i", "0.02", "-c", "100", "-W", "5", &peer]);
        let mut server = star.workers[0].spawn(["iperf3", "--server", "--one-off", "--forceflush"]);
        server.wait_for("Server listening", SOON);
        let address = Star::worker_address(0).to_string();
        let text = star.workers[1].run(["iperf3", "--json", "--client", &address, "--time", "2"]);
        server.wait_success(SOON);
        let result: serde_json::Value = serde_json::from_str(&text).expect("iperf3 prints JSON");
        let megabits = result["end"]["sum_received"]["bits_per_second"].as_f64().expect("a throughput") / 1e6;
        assert!(megabits > 0.0, "the throughput must be above 0: {text}");
        let pings = ping.wait_success(SOON);
        assert!(pings.contains(" 0% packet loss"), "{pings}");
        let results = group.results(SOON);
        let counters = star.switch.run(["nft", "list", "ruleset"]);
        assert_eq!(counters.matches("counter packets 1 bytes 84").count(), 2, "{counters}");
        report(&format!("{mode}: beside aggregation TCP {megabits:.0} Mbit/s; {}", times(&results)));
        daemon.stop();
    }
}

#[test]
fn a_killed_daemon_leaves_nothing_behind_and_another_resumes() {
    if !root_xdp_and("a_killed_daemon_leaves_nothing_behind_and_another_resumes", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let mut daemon = Daemon::in_star(&star, PortKind::Xdp, &[]);
    let mut group = Group::in_star(&star, daemon.address(), "--rounds 1000000 --floats 100000");
    for _ in 0..3 {
        daemon.wait_for_results();
        assert!(has_program(&star.switch, "s1"));
        daemon.process.kill(SOON);
        wait::until("the programs to be removed", SOON, || {
            (0..star.workers.len()).all(|worker| !has_program(&star.switch, &Star::port(worker)))
        });
        daemon = Daemon::in_star(&star, PortKind::Xdp, &[]);
    }
    daemon.wait_for_results();
    group.end();
    let results = group.results(SOON);
    assert_eq!((total(&results, "partial_rounds"), total(&results, "missed_rounds")), (0, 0));
    assert_eq!(total(&results, "rejoins"), WORKERS * 3);
    report(&format!("AF_XDP, the switch killed 3 times: {}", costs(&results)));
    daemon.stop();
    assert!(!has_program(&star.switch, "s1"));
}

#[test]
fn interfaces_that_cannot_be_served_are_refused_with_the_reason() {
    if !root_xdp_and("interfaces_that_cannot_be_served_are_refused_with_the_reason", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions { workers: 1, ..StarOptions::default() });
    let missing = refused(&star.switch, "xdp:s9");
    assert!(missing.stderr.contains("interface \"s9\" does not exist, expected one of: "), "{missing:?}");
    let tunnel = refused(&star.switch, "xdp:s1,driver,zerocopy");
    assert!(tunnel.stderr.contains("\"s1\"") && tunnel.stderr.contains("not supported"), "{tunnel:?}");

    let mut daemon = Daemon::in_star(&star, PortKind::Xdp, &[]);
    for port in ["xdp:s1", "s1"] {
        let second = refused(&star.switch, port);
        assert!(second.stderr.contains("\"s1\" is already served by another iswitchd"), "{second:?}");
    }
    // In another namespace, no daemon claims the interface, but its XDP program is still attached.
    let elsewhere = Namespace::new("other");
    star.switch.ip(&format!("link set s1 netns {}\n", elsewhere.name()));
    assert!(has_program(&elsewhere, "s1"));
    let foreign = refused(&elsewhere, "xdp:s1");
    assert!(foreign.stderr.contains("another XDP program is attached to interface \"s1\""), "{foreign:?}");
    daemon.process.wait_for("interface is gone", SOON);
    daemon.stop();

    let star = Star::new(StarOptions { workers: 1, mtu_bytes: 9000 });
    let jumbo = refused(&star.switch, "xdp:s1");
    assert!(jumbo.stderr.contains("\"s1\" has an MTU of 9000 bytes, expected at most 3826"), "{jumbo:?}");
}

#[test]
fn a_cut_cable_costs_only_time() {
    if !root_xdp_and("a_cut_cable_costs_only_time", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::in_star(&star, PortKind::Xdp, &[]);
    let mut group = Group::in_star(&star, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    for (namespace, interface) in [(&star.switch, "s1"), (&star.workers[0], WORKER_INTERFACE)] {
        namespace.ip(&format!("link set {interface} down\n"));
        std::thread::sleep(Duration::from_millis(500));
        namespace.ip(&format!("link set {interface} up\n"));
        daemon.wait_for_results();
    }
    group.end();
    let results = group.results(SOON);
    assert_eq!((total(&results, "partial_rounds"), total(&results, "missed_rounds")), (0, 0));
    assert_eq!(daemon.traffic("expelled"), 0);
    daemon.stop();
}

#[test]
fn a_recreated_interface_is_served() {
    if !root_xdp_and("a_recreated_interface_is_served", &[]) {
        return;
    }
    let _together = together();
    // Without the sandbox, the daemon itself opens the new interface; in the sandbox, the monitor does so for it.
    for option in ["--no-sandbox", SMALL_BUFFER] {
        let options = StarOptions { workers: 2, ..StarOptions::default() };
        let star = Star::new(options);
        let mut daemon = Daemon::in_star(&star, PortKind::Xdp, &[option]);
        for _ in 0..2 {
            Group::in_star(&star, daemon.address(), "--rounds 5").results(SOON);
            star.replug(0, options);
            daemon.process.wait_for("serving the recreated interface", SOON);
        }
        Group::in_star(&star, daemon.address(), "--rounds 5").results(SOON);
        daemon.process.kill(SOON);
        wait::until("the programs to be removed", SOON, || !has_program(&star.switch, "s1"));
    }
}

#[test]
fn three_capabilities_suffice() {
    if !root_xdp_and("three_capabilities_suffice", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions { workers: 1, ..StarOptions::default() });
    let directory = scratch::directory();
    let program = directory.path().join("iswitchd");
    std::fs::copy(binaries::iswitchd(), &program).expect("room for the program");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).expect("its own directory");
    let capabilities = "-all,+net_raw,+net_admin,+bpf";
    let script = format!(
        "exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
         --inh-caps {capabilities} --ambient-caps {capabilities} --bounding-set {capabilities} \
         --pdeathsig KILL {} --port xdp:s1 {SMALL_BUFFER} --control-socket {}",
        program.display(),
        directory.path().join("control").display()
    );
    let mut daemon = star.switch.spawn(["sh", "-c", &script]);
    daemon.wait_for(" ready: ", SOON);
    assert!(has_program(&star.switch, "s1"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).expect("a live process");
    for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "Uid:\t65534", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line} is not in {status}");
    }
    let address = std::net::SocketAddrV4::new(SWITCH_ADDRESS, iswitch_protocol::limits::DEFAULT_PORT);
    Group::in_star(&star, address, "--rounds 20").results(SOON);
    daemon.signal(Signal::TERM);
    daemon.wait_success(SOON);
    assert!(!has_program(&star.switch, "s1"));
}
