//! Packets from addresses that no host can have: the switch answers none of them, and counts each kind in a counter of
//! its own. Needs root.

use std::net::SocketAddrV4;

use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::requirements::{alone, networks_and};
use iswitch_harness::wait;
use iswitch_protocol::wire::{ControlBody, ControlRepr, JoinRepr};
use iswitch_testbench::storm::{SENDER_MAC, Storm, control_frame};

/// Job of the forged Joins; the workers have job 0.
const JOB: u32 = 9;

/// A sender that cannot be answered, and the counter of the datagrams from it.
struct Case {
    mac: [u8; 6],
    source: &'static str,
    counter: &'static str,
}

const fn case(mac: [u8; 6], source: &'static str, counter: &'static str) -> Case {
    Case { mac, source, counter }
}

const BROADCAST_MAC: [u8; 6] = [0xff; 6];
const MULTICAST_MAC: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];

const RAW: [Case; 7] = [
    case(BROADCAST_MAC, "10.9.0.1:5000", "source_mac_not_unicast"),
    case(MULTICAST_MAC, "10.9.0.1:5000", "source_mac_not_unicast"),
    case(SENDER_MAC, "255.255.255.255:5000", "source_address_not_unicast"),
    case(SENDER_MAC, "239.1.2.3:5000", "source_address_not_unicast"),
    case(SENDER_MAC, "0.0.0.0:5000", "source_address_not_unicast"),
    case(SENDER_MAC, "127.0.0.1:5000", "source_address_not_unicast"),
    case(SENDER_MAC, "10.9.0.1:0", "source_port_zero"),
];
/// Cases that reach a UDP socket; the kernel drops the packets of all other cases before they reach one.
const UDP: [Case; 1] = [case(SENDER_MAC, "10.9.0.1:0", "source_port_zero")];

/// Returns the sum of a counter over all ports.
fn of_ports(daemon: &Daemon, counter: &str) -> u64 {
    let counters = daemon.counters();
    let ports = counters["ports"].as_object().expect("ports by name").values();
    ports.map(|port| port[counter].as_u64().unwrap_or_else(|| panic!("no {counter} in {port}"))).sum()
}

fn check(star: &Star, daemon: &Daemon, case: &Case) {
    let (counted, answers) = (of_ports(daemon, case.counter), daemon.traffic("control_sent"));
    let join = JoinRepr { instance: 1, ..JoinRepr::worker(1000, 366, 2) };
    let packet = ControlRepr { job: JOB, request: 77, body: ControlBody::Join(join) };
    let source: SocketAddrV4 = case.source.parse().expect("an address");
    let frame = control_frame(case.mac, source, &packet);
    star.workers[0].enter(|| {
        let mut sender = Storm::open(1).expect("the interface must open");
        sender.send_frame(&frame).expect("the frame must be sent");
    });
    let what = format!("{} to be counted as {}", case.source, case.counter);
    wait::until(&what, SOON, || of_ports(daemon, case.counter) != counted);
    assert_eq!(of_ports(daemon, case.counter), counted + 1, "{}", case.source);
    assert_eq!(daemon.traffic("control_sent"), answers, "{} must not be answered", case.source);
}

#[test]
fn packets_with_impossible_sources_are_counted_but_not_answered() {
    if !networks_and("packets_with_impossible_sources_are_counted_but_not_answered", &[]) {
        return;
    }
    let _alone = alone();
    let star = Star::new(StarOptions { workers: 2, ..StarOptions::default() });
    for (kind, cases) in [(PortKind::Raw, &RAW[..]), (PortKind::Udp, &UDP)] {
        let daemon = Daemon::in_star(&star, kind, &[]);
        cases.iter().for_each(|case| check(&star, &daemon, case));
        let results = Group::in_star(&star, daemon.address(), "--rounds 20").results(SOON);
        assert_eq!(results.len(), 2);
        daemon.stop();
    }
}
