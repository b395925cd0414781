//! Results through the group of a job, over a bridge between namespaces: the switch sends one copy, which the bridge
//! clones for all workers. Workers that the group does not reach receive results by unicast.

use std::time::Instant;

use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, total};
use iswitch_harness::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::requirements::{networks_and, together};
use serde_json::Value;

/// Number of rounds of a job that runs until its test ends it.
const ENDLESS: &str = "--rounds 100000000";

/// nft script that drops a host's incoming packets to multicast groups, as a firewall does.
const FIREWALL: &str = "table ip firewall {
    chain input {
        type filter hook input priority 0; policy accept;
        ip daddr 239.192.0.0/14 counter drop
    }
}
";

/// Returns the status of a job, if it exists.
fn job(daemon: &Daemon, number: u64) -> Option<Value> {
    daemon.jobs().as_array()?.iter().find(|job| job["job"] == number).cloned()
}

/// Returns the IPv4 addresses of the members of a job that hear its group.
fn hearing(daemon: &Daemon, number: u64) -> Vec<String> {
    let job = job(daemon, number).unwrap_or_default();
    let members = job["members"].as_array().cloned().unwrap_or_default();
    let heard = members.iter().filter(|member| member["hears_group"] == true);
    let address = |member: &Value| member["address"].as_str().expect("an address").to_owned();
    let mut hosts: Vec<_> = heard.map(address).collect();
    hosts.iter_mut().for_each(|host| host.truncate(host.find(':').expect("an address has a port")));
    hosts.sort();
    hosts
}

/// Waits until exactly the given workers of a star hear the group of a job.
fn await_hearing(daemon: &Daemon, number: u64, workers: &[usize]) {
    let mut expected: Vec<_> = workers.iter().map(|at| Star::worker_address(*at).to_string()).collect();
    expected.sort();
    let begin = Instant::now();
    loop {
        let hearing = hearing(daemon, number);
        if hearing == expected {
            return;
        }
        assert!(begin.elapsed() < SOON, "{hearing:?} hear the group, expected {expected:?}");
    }
}

/// Waits until the daemon sends results to groups, and returns the number of results that it has sent to groups.
fn await_group_results(daemon: &Daemon) -> u64 {
    daemon.wait_for_more("group_sent", daemon.traffic("group_sent"))
}

/// Waits until the daemon has sent at least 1,000 consecutive results as one copy each and not as four. A worker that
/// asks for a result on a busy machine returns to unicast for a while, so that the first results prove nothing.
fn await_one_copy_each(daemon: &Daemon) {
    let begin = Instant::now();
    loop {
        let before = daemon.counters();
        daemon.wait_until_results(daemon.results() + 1000);
        let after = daemon.counters();
        let rose = |name: &str| {
            let of = |counters: &Value| counters["traffic"][name].as_u64().expect("a counter");
            of(&after) - of(&before)
        };
        if rose("group_sent") >= 1000 && rose("data_sent") < 2 * rose("group_sent") {
            return;
        }
        assert!(begin.elapsed() < SOON, "{before} {after}");
    }
}

#[test]
fn one_copy_of_a_result_reaches_all_workers() {
    if !networks_and("one_copy_of_a_result_reaches_all_workers", &[]) {
        return;
    }
    let _together = together();
    for (kind, options) in PortKind::ALL.into_iter().flat_map(|kind| {
        [(kind, &["--group-delivery", "auto"][..]), (kind, &["--group-delivery", "auto", "--no-offload"])]
    }) {
        let star = Star::new(StarOptions::default());
        let daemon = Daemon::in_star(&star, kind, options);
        let mut group = Group::in_star(&star, daemon.address(), ENDLESS);
        await_hearing(&daemon, 0, &[0, 1, 2, 3]);
        await_one_copy_each(&daemon);
        group.end();
        let results = group.results(SOON);
        assert!(total(&results, "rounds") > 0);
        daemon.stop();
    }
}

#[test]
fn results_are_sent_by_unicast_if_groups_are_off() {
    if !networks_and("results_are_sent_by_unicast_if_groups_are_off", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &["--group-delivery", "off"]);
    Group::in_star(&star, daemon.address(), "--rounds 500").results(SOON);
    assert_eq!(daemon.traffic("group_sent"), 0);
    daemon.stop();
}

#[test]
fn a_worker_behind_a_firewall_is_served_by_unicast() {
    if !networks_and("a_worker_behind_a_firewall_is_served_by_unicast", &[]) {
        return;
    }
    let _together = together();
    for kind in PortKind::ALL {
        let star = Star::new(StarOptions::default());
        star.workers[2].nft(FIREWALL);
        let daemon = Daemon::in_star(&star, kind, &["--group-delivery", "auto"]);
        let mut group = Group::in_star(&star, daemon.address(), ENDLESS);
        await_hearing(&daemon, 0, &[0, 1, 3]);
        await_group_results(&daemon);
        await_hearing(&daemon, 0, &[0, 1, 3]);
        group.end();
        group.results(SOON);
        daemon.stop();
    }
}

#[test]
fn a_worker_that_becomes_deaf_returns_to_unicast_and_may_come_back() {
    if !networks_and("a_worker_that_becomes_deaf_returns_to_unicast_and_may_come_back", &[]) {
        return;
    }
    let _together = together();
    for kind in PortKind::ALL {
        let star = Star::new(StarOptions::default());
        let daemon = Daemon::in_star(&star, kind, &["--group-delivery", "auto"]);
        let mut group = Group::in_star(&star, daemon.address(), ENDLESS);
        await_hearing(&daemon, 0, &[0, 1, 2, 3]);
        star.workers[1].nft(FIREWALL);
        await_hearing(&daemon, 0, &[0, 2, 3]);
        daemon.wait_for_log("(10.9.0.2:");
        star.workers[1].run(["nft", "delete", "table", "ip", "firewall"]);
        await_hearing(&daemon, 0, &[0, 1, 2, 3]);
        group.end();
        group.results(SOON);
        daemon.stop();
    }
}

/// Counts the packets to groups that arrive at a host.
fn count_groups(host: &Namespace) {
    host.nft(&format!(
        "table netdev arrivals {{
            chain ingress {{
                type filter hook ingress device \"{WORKER_INTERFACE}\" priority 0; policy accept;
                ip daddr 239.192.0.0/14 udp dport 61000-65535 counter
            }}
        }}
        "
    ));
}

/// Returns the number of packets that [`count_groups`] has counted.
fn counted(host: &Namespace) -> u64 {
    let listing = host.run(["nft", "list", "table", "netdev", "arrivals"]);
    let count = listing.split_once("counter packets ").and_then(|(_, rest)| rest.split_whitespace().next());
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no counter in {listing}"))
}

#[test]
fn a_snooping_bridge_keeps_the_group_of_a_job_from_other_hosts() {
    if !networks_and("a_snooping_bridge_keeps_the_group_of_a_job_from_other_hosts", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions { workers: 5, ..StarOptions::default() });
    // A bridge floods the packets of groups until the response interval after its first query has passed. The default
    // is 10 s.
    star.switch.ip("link set br0 type bridge mcast_snooping 1 mcast_query_response_interval 10\n");
    star.switch.ip("link set br0 type bridge mcast_querier 1 mcast_startup_query_interval 10\n");
    let daemon = Daemon::on_ports(&star, &["--group-delivery", "auto"]);
    let job = |job: u64, workers: &[usize]| {
        let hosts = workers.iter().map(|at| &star.workers[*at]);
        Group::of(hosts, daemon.address(), &format!("{ENDLESS} --job {job}"))
    };
    let (mut first, mut second) = (job(1, &[0, 1]), job(2, &[2, 3]));
    await_hearing(&daemon, 1, &[0, 1]);
    await_hearing(&daemon, 2, &[2, 3]);
    first.end();
    first.results(SOON);
    // Only the second job is left. Host 0, a worker of the first job, must not receive the results of the second.
    [0, 3, 4].into_iter().for_each(|host| count_groups(&star.workers[host]));
    daemon.wait_until_results(daemon.results() + 1000);
    let [left, member, stranger] = [0, 3, 4].map(|host| counted(&star.workers[host]));
    assert!(member > 0, "the member should receive results through the group");
    assert_eq!([left, stranger], [0, 0]);
    second.end();
    second.results(SOON);
    daemon.stop();
}
