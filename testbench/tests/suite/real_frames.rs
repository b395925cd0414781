//! Tests of the daemon on the ports of a bridge, between workers in network namespaces. The tests use real frames, and
//! add ordinary traffic and faults. Needs root.

use std::time::{Duration, Instant};

use iswitch_harness::cluster::{Daemon, Group, SOON, times, total};
use iswitch_harness::faults::{Faults, Hits, complete_checksums, hits};
use iswitch_harness::netns::{Namespace, SWITCH_ADDRESS, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::process::{Process, Signal};
use iswitch_harness::requirements::{alone, networks_and, report, together};
use iswitch_harness::scratch;
use iswitch_harness::wait;

/// Number of floats in the paper's largest model (6.4 MB).
const LARGE: u32 = 1_687_206;
const LARGE_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn vectors_of_6_megabytes_are_exact() {
    if !networks_and("vectors_of_6_megabytes_are_exact", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &[]);
    let arguments = format!("--floats {LARGE} --rounds 50");
    let results = Group::in_star(&star, daemon.address(), &arguments).results(LARGE_TIMEOUT);
    assert_eq!(total(&results, "rounds"), 4 * 50);
    let retransmitted = total(&results, "retransmitted");
    report(&format!(
        "raw ports: 4 workers, {LARGE} floats: {}, {retransmitted} retransmitted",
        times(&results)
    ));
    daemon.stop();
}

#[test]
fn sums_are_exact_without_super_frames() {
    if !networks_and("sums_are_exact_without_super_frames", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &["--no-offload"]);
    let results = Group::in_star(&star, daemon.address(), "--rounds 100 --no-offload").results(SOON);
    assert_eq!(total(&results, "rounds"), 4 * 100);
    report(&format!("raw ports without offload: 4 workers, 10119 floats: {}", times(&results)));
    daemon.stop();
}

#[test]
fn loss_costs_extra_packets_but_no_sum() {
    if !networks_and("loss_costs_extra_packets_but_no_sum", &[]) {
        return;
    }
    let _together = together();
    // Super-frames are lost as a whole, plain frames independently.
    for (arguments, rounds) in [("", 10), ("--no-offload", 5)] {
        let star = Star::new(StarOptions::default());
        let options: Vec<_> = arguments.split_whitespace().collect();
        let daemon = Daemon::on_ports(&star, &options);
        let faults = Faults { loss_permille: 10, ..Faults::default() };
        star.workers.iter().for_each(|worker| faults.inject(worker));
        let arguments = format!("--floats {LARGE} --rounds {rounds} {arguments}");
        let results = Group::in_star(&star, daemon.address(), &arguments).results(LARGE_TIMEOUT);
        let (lost, retransmitted) = (all_hits(&star).lost, total(&results, "retransmitted"));
        assert_eq!(total(&results, "rounds"), 4 * rounds);
        assert!(lost > 0 && retransmitted > 0, "{lost} packets lost, {retransmitted} segments retransmitted");
        report(&format!(
            "1 % loss {arguments}: {lost} lost, {retransmitted} retransmitted, {}",
            times(&results)
        ));
        daemon.stop();
    }
}

#[test]
fn duplicates_and_corruption_change_no_sum() {
    if !networks_and("duplicates_and_corruption_change_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &[]);
    let faults = Faults { duplication_permille: 20, corruption_permille: 20, ..Faults::default() };
    for worker in &star.workers {
        complete_checksums(worker);
        faults.inject(worker);
    }
    Group::in_star(&star, daemon.address(), "--rounds 200 --no-offload").results(SOON);
    let Hits { duplicated, corrupted, .. } = all_hits(&star);
    let bad_checksums = daemon.drops("bad_checksum");
    let repeated = daemon.drops("duplicate") + daemon.drops("late") + daemon.drops("stale_round");
    assert!(duplicated > 0 && repeated > 0, "{duplicated} packets duplicated, {repeated} dropped");
    // A packet that was duplicated after its corruption is counted twice.
    assert!(corrupted > 0 && bad_checksums >= corrupted, "{corrupted} changed, {bad_checksums} dropped");
    daemon.stop();
}

fn all_hits(star: &Star) -> Hits {
    star.workers.iter().map(hits).fold(Hits::default(), |sum, hits| Hits {
        lost: sum.lost + hits.lost,
        duplicated: sum.duplicated + hits.duplicated,
        corrupted: sum.corrupted + hits.corrupted,
    })
}

#[test]
fn ordinary_traffic_continues_during_aggregation() {
    if !networks_and("ordinary_traffic_continues_during_aggregation", &["iperf3", "ping"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &[]);
    let mut group = Group::in_star(&star, daemon.address(), "--rounds 1000000 --seconds 4");
    let peer = Star::worker_address(3).to_string();
    let ping = star.workers[2].spawn(["ping", "-q", "-i", "0.02", "-c", "100", "-W", "5", &peer]);
    let megabits = tcp_megabits(&star, 2);
    let overlap = if group.is_running() { "all of its time" } else { "part of its time" };
    let pings = ping.wait_success(SOON);
    assert!(pings.contains(" 0% packet loss"), "{pings}");
    let results = group.results(SOON);
    report(&format!("beside aggregation ({overlap}): TCP {megabits:.0} Mbit/s; {}", times(&results)));
    daemon.stop();
}

#[test]
fn an_idle_daemon_does_not_slow_down_tcp() {
    if !networks_and("an_idle_daemon_does_not_slow_down_tcp", &["iperf3"]) {
        return;
    }
    let _alone = alone();
    let star = Star::new(StarOptions::default());
    let mut ratios: Vec<f64> = (0..7)
        .map(|turn| {
            let with_daemon = || {
                let daemon = Daemon::on_ports(&star, &[]);
                let megabits = tcp_megabits(&star, 1);
                daemon.stop();
                megabits
            };
            // Each of the two conditions goes first equally often, because machines warm up and slow down.
            if turn % 2 == 0 {
                let with = with_daemon();
                with / tcp_megabits(&star, 1)
            } else {
                let without = tcp_megabits(&star, 1);
                with_daemon() / without
            }
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    report(&format!(
        "TCP through the bridge with an idle daemon: {:.2} of that without, median of {} ({:.2} to {:.2})",
        ratios[ratios.len() / 2],
        ratios.len(),
        ratios[0],
        ratios[ratios.len() - 1]
    ));
}

/// Returns the TCP throughput from the second worker to the first.
fn tcp_megabits(star: &Star, seconds: u32) -> f64 {
    let mut server = star.workers[0].spawn(["iperf3", "--server", "--one-off", "--forceflush"]);
    server.wait_for("Server listening", SOON);
    let (address, seconds) = (Star::worker_address(0).to_string(), seconds.to_string());
    let words = ["iperf3", "--json", "--client", &address, "--time", &seconds];
    let text = star.workers[1].run(words);
    server.wait_success(SOON);
    let result: serde_json::Value = serde_json::from_str(&text).expect("iperf3 prints JSON");
    let bits = result["end"]["sum_received"]["bits_per_second"].as_f64().expect("a throughput");
    assert!(bits > 0.0, "the throughput must be above 0: {text}");
    bits / 1e6
}

/// The ToS values of control and data packets.
const TAGS: [u8; 2] = [0x0c, 0x1c];

/// One captured IPv4 packet.
#[derive(Debug)]
struct Captured {
    source: String,
    destination: String,
    tos: u8,
    is_fragment: bool,
}

impl Captured {
    fn is_tagged(&self) -> bool {
        TAGS.contains(&self.tos)
    }
}

#[test]
fn tagged_packets_stay_between_worker_and_switch() {
    if !networks_and("tagged_packets_stay_between_worker_and_switch", &["tshark"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &[]);
    let directory = scratch::directory();
    let namespaces = star.workers.iter().map(|worker| (worker, WORKER_INTERFACE));
    let captures: Vec<_> = namespaces
        .chain([(&star.switch, "br0")])
        .enumerate()
        .map(|(number, (namespace, interface))| {
            let file = directory.path().join(format!("{number}.pcapng"));
            (start_capture(namespace, interface, &file), file)
        })
        .collect();
    Group::in_star(&star, daemon.address(), "--rounds 20").results(SOON);
    for worker in &star.workers {
        worker.run(["ping", "-q", "-c", "1", "-p", LAST_PACKET_DIGITS, &SWITCH_ADDRESS.to_string()]);
    }
    let captured: Vec<Vec<Captured>> = captures
        .into_iter()
        .map(|(capture, file)| {
            stop_capture(capture, &file);
            read_capture(&star.switch, &file)
        })
        .collect();
    let (bridge, workers) = captured.split_last().expect("one for each interface");
    workers.iter().enumerate().for_each(|(worker, packets)| check_capture(worker, packets));
    let leaked: Vec<_> = bridge.iter().filter(|packet| packet.is_tagged()).collect();
    assert!(leaked.is_empty(), "tagged packets reached the bridge: {leaked:?}");
    daemon.stop();
}

fn start_capture(namespace: &Namespace, interface: &str, file: &std::path::Path) -> Process {
    let path = file.to_str().expect("a path in UTF-8");
    let mut capture = namespace.spawn(["tshark", "-q", "-s", "96", "-i", interface, "-w", path]);
    // tshark writes the file's header once the interface is open.
    let begin = Instant::now();
    while std::fs::metadata(file).map_or(0, |metadata| metadata.len()) == 0 {
        assert!(capture.is_running() && begin.elapsed() < SOON, "tshark must start to capture");
        std::thread::sleep(Duration::from_millis(5));
    }
    capture
}

/// Payload of the last packet of each capture: as the hexadecimal digits that ping expects, and (in `LAST_PACKET`) as
/// the bytes that the packet contains.
const LAST_PACKET_DIGITS: &str = "e51a579ac4e70df3";
const LAST_PACKET: [u8; 8] = 0xe51a_579a_c4e7_0df3_u64.to_be_bytes();

/// Stops a capture, but not before its last packet is in the file, because packets that the kernel still buffers would
/// be lost.
fn stop_capture(capture: Process, file: &std::path::Path) {
    let is_complete = |bytes: Vec<u8>| bytes.windows(LAST_PACKET.len()).any(|window| window == LAST_PACKET);
    wait::until("the last packet of the capture", SOON, || std::fs::read(file).is_ok_and(is_complete));
    capture.stop(Signal::INT, SOON);
}

fn read_capture(namespace: &Namespace, file: &std::path::Path) -> Vec<Captured> {
    let path = file.to_str().expect("a path in UTF-8");
    let fields = ["ip.src", "ip.dst", "ip.dsfield", "ip.flags.mf", "ip.frag_offset"];
    let mut command = namespace.command("tshark");
    command.args(["-n", "-r", path, "-Y", "ip", "-T", "fields", "-E", "occurrence=f"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let text = iswitch_harness::process::run(&mut command);
    text.lines().map(|line| parse_captured(line).unwrap_or_else(|| panic!("{line:?}"))).collect()
}

fn parse_captured(line: &str) -> Option<Captured> {
    let [source, destination, tos, more, offset] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    Some(Captured {
        source: source.to_owned(),
        destination: destination.to_owned(),
        tos: u8::from_str_radix(tos.strip_prefix("0x")?, 16).ok()? & 0xfc,
        is_fragment: !matches!(more, "0" | "False") || offset != "0",
    })
}

/// Asserts that a worker's capture contains control and data packets in both directions, no fragments, and no iSwitch
/// packets from another worker.
fn check_capture(worker: usize, packets: &[Captured]) {
    let (own, switch) = (Star::worker_address(worker).to_string(), SWITCH_ADDRESS.to_string());
    for tos in TAGS {
        for (source, destination) in [(&own, &switch), (&switch, &own)] {
            let found = packets.iter().any(|packet| {
                packet.tos == tos && packet.source == *source && packet.destination == *destination
            });
            assert!(found, "no packet of ToS {tos:#04x} from {source} to {destination}");
        }
    }
    let is_strange = |packet: &&Captured| {
        let is_own = (packet.source == own && packet.destination == switch)
            || (packet.source == switch && packet.destination == own);
        packet.is_fragment || (packet.is_tagged() && !is_own)
    };
    let strange: Vec<_> = packets.iter().filter(is_strange).collect();
    assert!(strange.is_empty(), "on the interface of worker {own}: {strange:?}");
}

#[test]
fn a_new_daemon_cleans_up_after_a_killed_one() {
    if !networks_and("a_new_daemon_cleans_up_after_a_killed_one", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let aggregate = |daemon: &Daemon| Group::in_star(&star, daemon.address(), "--rounds 20").results(SOON);
    // This daemon has no monitor, because a monitor would remove the rules at once.
    let daemon = Daemon::on_ports(&star, &["--no-sandbox"]);
    aggregate(&daemon);
    daemon.process.stop(Signal::KILL, SOON);
    assert_eq!(star.tables(), 4, "the rules of a killed daemon must remain");

    let mut daemon = Daemon::on_ports(&star, &[]);
    assert_eq!(star.tables(), 4);
    daemon.wait_for_log("removed the ingress rule of a daemon that is no longer running");
    aggregate(&daemon);
    // A second daemon cannot take over the port of a running one.
    let port = Star::port(0);
    let mut second = star.switch.command(iswitch_harness::binaries::iswitchd());
    let second = Process::spawn("second iswitchd", second.args(["--port", &port])).wait(SOON);
    assert!(!second.status.success() && second.stderr.contains("already served"), "{second:?}");
    assert!(daemon.process.is_running());
    aggregate(&daemon);
    daemon.stop();
    assert_eq!(star.tables(), 0, "no rule may remain");
    // The first line is the heading.
    let sockets = star.switch.run(["cat", "/proc/net/packet"]);
    assert_eq!(sockets.lines().count(), 1, "no packet socket may remain:\n{sockets}");
    let sockets = star.switch.run(["cat", "/proc/net/unix"]);
    assert!(!sockets.contains("iswitchd"), "no claim may remain:\n{sockets}");
}

#[test]
fn jumbo_frames_carry_longer_segments_and_overlong_ones_are_refused() {
    if !networks_and("jumbo_frames_carry_longer_segments_and_overlong_ones_are_refused", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions { mtu_bytes: 9000, ..StarOptions::default() });
    let daemon = Daemon::on_ports(&star, &[]);
    let arguments = "--floats 200000 --rounds 20 --segment-floats 2241";
    let results = Group::in_star(&star, daemon.address(), arguments).results(SOON);
    report(&format!("MTU 9000: 4 workers, 200000 floats: {}", times(&results)));
    daemon.stop();

    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &[]);
    for finished in Group::in_star(&star, daemon.address(), "--segment-floats 367").finish(SOON) {
        assert!(!finished.status.success());
        assert!(finished.stderr.contains("segment_floats is 367; reduce segment_floats"), "{finished:?}");
    }
    // If the path has a smaller MTU than the worker's interface, longer packets are dropped silently.
    star.workers.iter().for_each(|worker| worker.ip(&format!("link set {WORKER_INTERFACE} mtu 9000\n")));
    for finished in Group::in_star(&star, daemon.address(), "--segment-floats 2241").finish(SOON) {
        assert!(!finished.status.success());
        assert!(finished.stderr.contains("segment_floats is 2241; reduce segment_floats"), "{finished:?}");
    }
    daemon.stop();
}
