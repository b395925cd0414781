//! Checks of the counters of a daemon on this machine for signs of problems.

use super::finding::Report;
use crate::view::{View, value};

/// Receive buffer of a port below which windows are small, in bytes as the kernel counts them.
const RECV_BUFFER_MIN_BYTES: u64 = 4 << 20;

/// Checks the state of a daemon.
pub(super) fn check(report: &mut Report, view: &View) {
    report.ok("daemon", format!("running, with {} jobs", view.jobs.len()));
    check_ports(report, view);
    check_drops(report, view);
    for job in &view.jobs {
        if job.parent_lost {
            report.failed(
                "daemon-parent",
                format!("job {}: the switch above does not answer", job.job),
                "run iswitchctl doctor --switch with the parent's address here",
            );
        }
        if let Some(waiting) = job.waiting.as_ref().filter(|waiting| waiting.waited_ms >= 1000) {
            let ids: Vec<_> = waiting.members.iter().map(|member| member.member.to_string()).collect();
            report.warning(
                "daemon-straggler",
                format!("job {} waits {} ms for member {}", job.job, waiting.waited_ms, ids.join(", ")),
                "iswitchctl jobs has its address: look at that machine",
            );
        }
    }
}

fn check_ports(report: &mut Report, view: &View) {
    for port in &view.ports {
        let (name, bytes) = (&port.name, port.recv_buffer_bytes);
        if bytes < RECV_BUFFER_MIN_BYTES {
            report.warning(
                "daemon-buffer",
                format!("port {name} has a receive buffer of {bytes} bytes: windows are small"),
                "sysctl -w net.core.rmem_max=16777216, or start iswitchd with CAP_NET_ADMIN",
            );
        }
        let lost = value(&port.counters, "receive_buffer_drops");
        if lost > 0 {
            report.warning(
                "daemon-buffer",
                format!("port {name}: {lost} datagrams were lost because the receive buffer was full"),
                "raise --recv-buffer-bytes, and net.core.rmem_max if the daemon is not root",
            );
        }
        let untagged = value(&port.counters, "untagged");
        if untagged > 0 {
            report.warning(
                "daemon-untagged",
                format!("port {name}: {untagged} datagrams came without our ToS"),
                "somebody removes the ToS on the way, or others use this UDP port: iswitchctl doctor --answer here and \
                 --peer on the workers tell",
            );
        }
    }
}

fn check_drops(report: &mut Report, view: &View) {
    const SIGNS: [(&str, &str); 5] = [
        ("not_authentic", "a worker has another key, or somebody tries: compare the files of --key-file"),
        ("wrong_version", "a worker is of another release: install the same on all machines"),
        (
            "fragment",
            "a link on the way has a smaller MTU: iswitchctl doctor --switch on the workers finds it",
        ),
        ("other_port", "a worker's packets arrive on two ports: remove the second cable, or the loop"),
        ("rate_limited", "too many Joins: look who sends them, or raise --join-rate"),
    ];
    for (reason, fix) in SIGNS {
        let count = value(&view.drops, reason);
        if count > 0 {
            report.warning("daemon-drops", format!("{count} datagrams dropped: {reason}"), fix);
        }
    }
}
