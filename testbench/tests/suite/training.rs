//! Tests of training over real frames, during which the aggregator is killed. Training must resume automatically and
//! still solve the task. Needs root.

use std::fmt::Display;
use std::net::SocketAddrV4;

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, PortKind, SOON, settled_results};
use iswitch_harness::netns::{Namespace, SWITCH_ADDRESS, Star, StarOptions};
use iswitch_harness::process::{Process, Signal};
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_harness::scratch;
use iswitch_harness::tree::Tree;
use serde_json::Value;
use tempfile::TempDir;

/// Number of times that a switch is killed in one training.
const KILLS: usize = 3;
/// Rank of the worker that is killed; worker 0 prints the result.
const VICTIM: usize = 2;
/// Return at which CartPole-v1 counts as solved.
const SOLVED: f64 = 475.0;

/// Arguments of `iswitch train` in synchronous and asynchronous jobs.
const SYNCHRONOUS: &str = "ppo --env CartPole-v1 --steps 120000";
const ASYNCHRONOUS: &str = "a2c --env CartPole-v1 --steps 200000 --async --staleness 3";

/// Processes of `iswitch train`, one in each namespace.
struct Training {
    workers: Vec<Process>,
    _directory: TempDir,
}

impl Training {
    fn start<'a>(
        namespaces: impl IntoIterator<Item = &'a Namespace>,
        switch: impl Display,
        arguments: &str,
    ) -> Self {
        let directory = scratch::directory();
        let namespaces: Vec<_> = namespaces.into_iter().collect();
        let spawn = |(rank, namespace): (usize, &&Namespace)| {
            let place = format!("--switch {switch} --workers {} --rank {rank}", namespaces.len());
            let mut command = namespace.command(binaries::iswitch());
            command.arg("train").args(arguments.split_whitespace()).args(["--json", "--quiet", "--out"]);
            command.arg(directory.path().join("run")).args(place.split_whitespace());
            Process::spawn(&format!("iswitch train of rank {rank}"), &mut command)
        };
        Self { workers: namespaces.iter().enumerate().map(spawn).collect(), _directory: directory }
    }

    fn signal(&mut self, signal: Signal) {
        self.workers.iter_mut().for_each(|worker| worker.signal(signal));
    }

    /// Waits until all processes have exited, and returns the result of worker 0. Asserts that the task has been
    /// solved.
    fn finish(self, what: &str) -> Value {
        let result = self.wait(what);
        assert_eq!(result["replicas_identical"], true, "{result}");
        assert!(result["final_return"].as_f64().is_some_and(|it| it >= SOLVED), "{result}");
        result
    }

    /// Waits until all processes have exited successfully, and returns the result of worker 0.
    fn wait(self, what: &str) -> Value {
        let printed: Vec<_> = self.workers.into_iter().map(|worker| worker.wait_success(6 * SOON)).collect();
        let result: Value = serde_json::from_str(&printed[0]).expect(&printed[0]);
        report(&format!("{what}: {result}"));
        result
    }
}

#[test]
fn training_survives_switch_restarts() {
    if !networks_and("training_survives_switch_restarts", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let mut daemon = Daemon::on_ports(&star, &[]);
    let mut training = Training::start(&star.workers, daemon.address(), SYNCHRONOUS);
    daemon.wait_for_results();
    for _ in 0..KILLS {
        daemon.process.kill(SOON);
        assert!(training.workers.iter_mut().all(Process::is_running), "the workers must still be training");
        daemon = Daemon::on_ports(&star, &[]);
        daemon.wait_for_results();
    }
    training.finish("switch killed and started again");
    daemon.stop();
}

#[test]
fn training_moves_to_a_standby_switch() {
    if !networks_and("training_moves_to_a_standby_switch", &[]) {
        return;
    }
    let _together = together();
    for arguments in [SYNCHRONOUS, ASYNCHRONOUS] {
        let star = Star::new(StarOptions::default());
        let mut first = Daemon::in_star(&star, PortKind::Udp, &[]);
        let address = SocketAddrV4::new(SWITCH_ADDRESS, first.address().port() + 16);
        let standby = Daemon::on_udp(&star.switch, address, &[]);
        let switches = format!("{},{address}", first.address());
        let mut training = Training::start(&star.workers, switches, arguments);
        first.wait_for_results();
        if arguments == ASYNCHRONOUS {
            // Nothing resends an aggregate that only some workers have received (V-9).
            training.signal(Signal::STOP);
            settled_results([&first]);
        }
        first.process.kill(SOON);
        training.signal(Signal::CONT);
        standby.wait_for_results();
        assert!(training.workers.iter_mut().all(Process::is_running), "the workers must still be training");
        let what = format!("{arguments}: switch killed, standby took over");
        if arguments == ASYNCHRONOUS {
            // Whether an asynchronous run solves the task within these steps depends on the pace of the workers.
            assert_eq!(training.wait(&what)["mode"], "asynchronous");
        } else {
            training.finish(&what);
        }
        standby.stop();
    }
}

#[test]
fn training_survives_switch_restarts_at_both_levels() {
    if !networks_and("training_survives_switch_restarts_at_both_levels", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&[2, 2]);
    let mut root = tree.start_root(PortKind::Raw, &[]);
    let mut racks: Vec<_> = (0..2).map(|rack| tree.start_rack(rack, PortKind::Raw, &[])).collect();
    let mut training = Training::start(tree.workers(), racks[0].address(), SYNCHRONOUS);
    racks[0].wait_for_results();
    root.process.kill(SOON);
    assert!(training.workers.iter_mut().all(Process::is_running), "the workers must still be training");
    root = tree.start_root(PortKind::Raw, &[]);
    racks[0].wait_for_results();
    racks.remove(1).process.kill(SOON);
    racks.push(tree.start_rack(1, PortKind::Raw, &[]));
    racks[1].wait_for_results();
    training.finish("root and a rack's switch killed and started again");
    racks.into_iter().for_each(|rack| drop(rack.stop()));
    root.stop();
}

#[test]
fn asynchronous_training_in_two_racks_survives_a_root_restart() {
    if !networks_and("asynchronous_training_in_two_racks_survives_a_root_restart", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&[2, 2]);
    for kind in PortKind::ALL {
        let mut root = tree.start_root(kind, &[]);
        let racks: Vec<_> = (0..2).map(|rack| tree.start_rack(rack, kind, &[])).collect();
        let mut training = Training::start(tree.workers(), racks[0].address(), ASYNCHRONOUS);
        racks.iter().for_each(|rack| _ = rack.wait_for_results());
        assert!(racks[1].traffic("partials") > 0, "vectors must go up as partial sums");
        // If only one rack has received an aggregate when the root dies, the aggregate cannot be recovered (V-9), so
        // all results must have been delivered before the root is killed.
        training.signal(Signal::STOP);
        settled_results(racks.iter().chain([&root]));
        root.process.kill(SOON);
        assert!(training.workers.iter_mut().all(Process::is_running), "the workers must still be training");
        root = tree.start_root(kind, &[]);
        training.signal(Signal::CONT);
        racks.iter().for_each(|rack| _ = rack.wait_for_results());
        let result = training.wait(&format!("asynchronous, {kind:?}, root killed and started again"));
        assert_eq!(result["mode"], "asynchronous", "{result}");
        // The numbers of gradients, by staleness from 0 to S.
        assert!(result["staleness"].as_array().is_some_and(|counts| counts.len() == 4), "{result}");
        racks.into_iter().for_each(|rack| drop(rack.stop()));
        root.stop();
    }
}

#[test]
fn training_continues_without_a_worker() {
    if !networks_and("training_continues_without_a_worker", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &["--lease-ms", "1000"]);
    let mut training = Training::start(&star.workers, daemon.address(), SYNCHRONOUS);
    daemon.wait_for_results();
    training.workers.remove(VICTIM).kill(SOON);
    training.finish("a worker killed");
    daemon.stop();
}
