//! Faults and the operator's responses to them.

use std::time::Duration;

use super::super::checker::Violation;
use super::super::network::Link;
use super::super::process::{SwitchNode, Waiting, WorkerNode};
use super::super::swarm::{Action, Node, Planned};
use super::super::wires::Ends;
use super::super::worker::{Request, Worker};
use super::super::{JOB, ScheduledEvent};
use super::{World, switch_node};

/// Interval between two checks by the operator.
const OPERATOR_INTERVAL: Duration = Duration::from_millis(20);

impl World<'_> {
    pub(super) fn act(&mut self, planned: Planned) -> Result<(), Violation> {
        if self.healed_at.is_some() {
            return Ok(());
        }
        self.note(|| format!("{:?}", planned.action));
        match planned.action {
            Action::CrashWorker { worker, restart_after, new_port } => {
                if self.workers[worker].worker.is_some() {
                    self.report.worker_crashes += 1;
                    self.checker.ended(self.workers[worker].life);
                    self.workers[worker].crash(self.now);
                    self.restart_worker(worker, restart_after, new_port);
                }
            }
            Action::CrashSwitch { restart_after } => {
                self.report.switch_crashes += 1;
                self.crash_switch(0, restart_after);
            }
            Action::CrashRack { rack, restart_after } => {
                self.report.rack_crashes += 1;
                self.crash_switch(rack, restart_after);
            }
            Action::Pause { node, duration } => {
                self.report.pauses += 1;
                self.process(node).pauses += 1;
                self.wires.queue.push(self.now.plus(duration), ScheduledEvent::Resume(node));
            }
            Action::TurnClock { node, by_us } => {
                self.report.clock_jumps += 1;
                self.process(node).turn_clock(by_us * 1000);
                self.schedule(node);
            }
            Action::Partition { workers, up, down, duration } => {
                self.report.partitions += 1;
                self.cut(Ends::Workers(workers), up, down, duration);
            }
            Action::CutStandby { workers, up, down, duration } => {
                self.report.partitions += 1;
                self.cut(Ends::Standby(workers), up, down, duration);
            }
            Action::CutUplink { rack, up, down, duration } => {
                self.report.uplink_cuts += 1;
                self.cut(Ends::Rack(rack), up, down, duration);
            }
            Action::Leave { worker, return_after } => {
                if self.workers[worker].worker.as_ref().is_some_and(Worker::is_member) {
                    self.restart_worker(worker, return_after, false);
                    self.checker.ended(self.workers[worker].life);
                    return self.ask(worker, Request::Leave);
                }
            }
            Action::SetThreshold { worker, threshold } => {
                return self.ask(worker, Request::SetThreshold(threshold));
            }
            Action::ForceBroadcast { worker } => {
                self.report.forced += 1;
                return self.ask(worker, Request::ForceBroadcast);
            }
            Action::Reset { worker } => return self.ask(worker, Request::Reset),
            Action::Halt { worker } => return self.ask(worker, Request::Halt),
        }
        Ok(())
    }

    fn crash_switch(&mut self, at: usize, restart_after: Duration) {
        self.checker.lost_switch();
        self.switches[at].crash();
        self.wires.queue.push(self.now.plus(restart_after), ScheduledEvent::StartSwitch(at));
    }

    fn cut(&mut self, ends: Ends, up: bool, down: bool, duration: Duration) {
        self.wires.partition(ends, up, down, Link::block);
        let end = ScheduledEvent::Reconnect { ends, up, down };
        self.wires.queue.push(self.now.plus(duration), end);
    }

    fn ask(&mut self, worker: usize, request: Request) -> Result<(), Violation> {
        self.workers[worker].request(self.now, request);
        if self.workers[worker].process.pauses == 0 {
            self.flush_worker(worker)?;
        }
        self.schedule(Node::Worker(worker));
        Ok(())
    }

    fn restart_worker(&mut self, worker: usize, after: Option<Duration>, new_port: bool) {
        if let Some(after) = after {
            self.workers[worker].will_start = true;
            self.wires.queue.push(self.now.plus(after), ScheduledEvent::StartWorker { worker, new_port });
        }
    }

    pub(super) fn resume(&mut self, node: Node) -> Result<(), Violation> {
        let process = self.process(node);
        // A process that was killed in the meantime is no longer paused.
        process.pauses = process.pauses.saturating_sub(1);
        if process.pauses > 0 {
            return Ok(());
        }
        self.note(|| format!("{node:?} resumes"));
        while let Some(Waiting { packet, link, group, .. }) = self.process(node).next_waiting() {
            match node {
                Node::Switch | Node::Rack(_) => self.give(node, packet, (link, None))?,
                // Another process may have replaced the one that was paused.
                Node::Worker(_) => self.arrive_at_member(packet, (link, group), false)?,
            }
        }
        self.schedule(node);
        Ok(())
    }

    /// Ends all faults; from now on, every live process must make progress.
    pub(super) fn heal(&mut self) {
        if self.healed_at.is_some() {
            return;
        }
        self.note(|| "all faults end".to_owned());
        self.healed_at = Some(self.now);
        self.wires.heal();
        let switches = 0..self.switches.len();
        for at in switches.clone() {
            self.wires.queue.push(self.now, ScheduledEvent::StartSwitch(at));
        }
        for node in switches.map(switch_node).chain((0..self.workers.len()).map(Node::Worker)) {
            let process = self.process(node);
            process.pauses = process.pauses.min(1);
            self.wires.queue.push(self.now, ScheduledEvent::Resume(node));
        }
        let queue = &mut self.wires.queue;
        for (worker, node) in self.workers.iter_mut().enumerate() {
            node.delivered_since_heal = 0;
            if let Some(worker) = &mut node.worker {
                worker.cancel_requests();
            }
            if node.will_start {
                queue.push(self.now, ScheduledEvent::StartWorker { worker, new_port: false });
            }
        }
        // The operator waits until the last late packet has arrived.
        queue.push(self.now.plus(self.scenario.link.max_lifetime()), ScheduledEvent::Operate);
    }

    /// Performs the operator's action for a job that cannot make progress by itself.
    pub(super) fn operate(&mut self) -> Result<(), Violation> {
        self.wires.queue.push(self.now.plus(OPERATOR_INTERVAL), ScheduledEvent::Operate);
        // The workers of a job with a standby switch may all be at that switch.
        let roots = self.switches.iter().filter(|node| node.parent.is_none());
        let job = roots.filter_map(|node| node.job(JOB)).max_by_key(|job| job.formed);
        if self.scenario.declared && job.as_ref().is_none_or(|job| !job.formed) {
            // The job starts with as many workers as it declared, so missing workers must return.
            for worker in 0..self.workers.len() {
                if self.workers[worker].worker.is_none() && !self.workers[worker].will_start {
                    self.restart_worker(worker, Some(Duration::ZERO), false);
                }
            }
        }
        let is_pinned = |node: &SwitchNode| node.job(JOB).is_some_and(|job| job.threshold_pinned);
        if let Some(pinned) = self.switches.iter().position(is_pinned) {
            return self.ask_one_of(Some(pinned), Request::SetThreshold(0));
        }
        let sets_thresholds =
            self.scenario.plan.iter().any(|planned| matches!(planned.action, Action::SetThreshold { .. }));
        match job {
            // A round that was opened with a threshold above the number of members cannot complete.
            Some(job) if job.halted || sets_thresholds && !self.was_reset => {
                self.ask_one_of(None, Request::Reset)
            }
            _ => Ok(()),
        }
    }

    /// Makes a member send a request. Members take turns; `switch` restricts the choice to the members of one switch.
    fn ask_one_of(&mut self, switch: Option<usize>, request: Request) -> Result<(), Violation> {
        let is_asked = |node: &&WorkerNode| {
            let is_there = switch.is_none_or(|at| self.switch_of(node.address()) == at);
            is_there && node.worker.as_ref().is_some_and(Worker::is_member)
        };
        let members: Vec<_> = self.workers.iter().filter(is_asked).map(|node| node.index).collect();
        let turn = self.now.as_nanos() / OPERATOR_INTERVAL.as_nanos() as u64;
        match members.len() {
            0 => Ok(()),
            count => self.ask(members[turn as usize % count], request),
        }
    }
}
