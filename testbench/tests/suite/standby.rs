//! Workers with a standby switch on real frames: the active switch is killed, or some of the workers cannot reach it.
//! In all cases, each sum contains exactly one contribution of each worker.

use std::net::SocketAddrV4;

use iswitch_harness::cluster::{Daemon, Group, SOON, costs, total};
use iswitch_harness::netns::{Namespace, SWITCH_ADDRESS, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_protocol::limits::DEFAULT_PORT;
use serde_json::Value;

const WORKERS: usize = 4;
/// UDP port of the standby switch, beyond the ports of the threads of the first switch.
const STANDBY_PORT: u16 = DEFAULT_PORT + 16;
/// Rank of the worker that cannot reach the first switch.
const VICTIM: usize = 2;
/// Short lease, so that the first switch notices soon that a worker is lost.
const SHORT_LEASE: [&str; 2] = ["--lease-ms", "1000"];

/// Two daemons, and a job whose workers use one of them at a time.
struct Rack {
    star: Star,
    daemons: [Option<Daemon>; 2],
    group: Group,
}

fn address(at: usize) -> SocketAddrV4 {
    SocketAddrV4::new(SWITCH_ADDRESS, [DEFAULT_PORT, STANDBY_PORT][at])
}

fn start(star: &Star, at: usize, arguments: &[&str]) -> Daemon {
    Daemon::on_udp(&star.switch, address(at), arguments)
}

impl Rack {
    /// Starts the daemons and the job, and waits until the job aggregates at the first daemon.
    fn start(options: &[&str], job: &str) -> Self {
        let star = Star::new(StarOptions { workers: WORKERS, ..StarOptions::default() });
        let daemons = [0, 1].map(|at| Some(start(&star, at, options)));
        let arguments = format!("--rounds 1000000 --standby {} {job}", address(1));
        let group = Group::in_star(&star, address(0), &arguments);
        let rack = Self { star, daemons, group };
        rack.daemon(0).wait_for_results();
        rack
    }

    fn daemon(&self, at: usize) -> &Daemon {
        self.daemons[at].as_ref().expect("the daemon is running")
    }

    fn kill(&mut self, at: usize) {
        self.daemons[at].take().expect("the daemon is running").process.kill(SOON);
    }

    /// Ends the job at a daemon, and returns the results of the workers. Asserts that every sum was exact and complete
    /// and that no worker missed one.
    fn end(mut self, at: usize, what: &str) -> Vec<Value> {
        self.daemon(at).wait_for_results();
        self.group.end();
        let results = self.group.results(SOON);
        report(&format!("{what}: {}", costs(&results)));
        assert_eq!(
            (total(&results, "partial_rounds"), total(&results, "missed_rounds")),
            (0, 0),
            "{results:?}"
        );
        self.daemons.into_iter().flatten().for_each(|daemon| drop(daemon.stop()));
        results
    }
}

/// Drops all packets between a worker and one of the daemons. The worker does not notice it: a rule for its own packets
/// above the device would make its system calls fail.
fn cut(worker: &Namespace, at: usize) {
    let port = address(at).port();
    worker.nft(&format!(
        "table netdev cut {{
            chain out {{ type filter hook egress device {WORKER_INTERFACE} priority 0; udp dport {port} drop; }}
            chain in {{ type filter hook ingress device {WORKER_INTERFACE} priority 0; udp sport {port} drop; }}
        }}"
    ));
}

fn heal(worker: &Namespace) {
    worker.run(["nft", "delete", "table", "netdev", "cut"]);
}

#[test]
fn a_job_goes_to_the_standby_and_back_when_its_switch_is_killed() {
    if !networks_and("a_job_goes_to_the_standby_and_back_when_its_switch_is_killed", &[]) {
        return;
    }
    let _together = together();
    for job in ["--floats 1000", "--floats 200000"] {
        for options in [&[][..], &["--threads", "2"]] {
            let mut rack = Rack::start(options, job);
            rack.kill(0);
            rack.daemon(1).wait_for_results();
            rack.daemons[0] = Some(start(&rack.star, 0, options));
            rack.kill(1);
            rack.daemon(0).wait_for_results();
            let results = rack.end(0, &format!("switch killed twice, {job} {options:?}"));
            assert!(results.iter().all(|result| result["rejoins"].as_u64() >= Some(2)), "{results:?}");
        }
    }
}

#[test]
fn a_worker_that_cannot_reach_the_switch_takes_the_others_to_the_standby() {
    if !networks_and("a_worker_that_cannot_reach_the_switch_takes_the_others_to_the_standby", &["nft"]) {
        return;
    }
    let _together = together();
    let rack = Rack::start(&SHORT_LEASE, "--floats 1000");
    cut(&rack.star.workers[VICTIM], 0);
    // Both switches are alive; only the standby can sum, because it alone reaches all workers.
    rack.daemon(1).wait_for_results();
    let summed_by_first = rack.daemon(0).results();
    rack.daemon(1).wait_for_results();
    assert_eq!(rack.daemon(0).results(), summed_by_first, "both switches have summed at the same time");
    heal(&rack.star.workers[VICTIM]);
    cut(&rack.star.workers[VICTIM], 1);
    rack.daemon(0).wait_for_results();
    let summed_by_standby = rack.daemon(1).results();
    rack.daemon(0).wait_for_results();
    assert_eq!(rack.daemon(1).results(), summed_by_standby, "both switches have summed at the same time");
    rack.end(0, "a worker cut off from one switch after the other");
}

#[test]
fn a_job_without_a_switch_that_all_workers_reach_waits() {
    if !networks_and("a_job_without_a_switch_that_all_workers_reach_waits", &["nft"]) {
        return;
    }
    let _together = together();
    let rack = Rack::start(&SHORT_LEASE, "--floats 1000");
    cut(&rack.star.workers[VICTIM], 0);
    cut(&rack.star.workers[VICTIM + 1], 1);
    rack.daemon(0).wait_for_log("a worker was lost or replaced");
    let results = || [0, 1].map(|at| rack.daemon(at).results());
    let before = results();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(results(), before, "a part of the workers must not continue alone");
    heal(&rack.star.workers[VICTIM]);
    rack.daemon(0).wait_for_results();
    rack.end(0, "no switch that all workers reach for some time");
}
