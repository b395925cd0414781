//! Checks the counters of a daemon on this machine for signs of problems.

use super::finding::Report;
use super::group;
use crate::view::{AwaitedView, View, value};

/// Minimum receive buffer of a port, in bytes, as the kernel reports it. A smaller buffer limits the workers' windows.
const RECV_BUFFER_MIN_BYTES: u64 = 4 << 20;

/// Checks the state of a daemon.
pub(super) fn check(report: &mut Report, view: &View) {
    report.ok("daemon", format!("running, with {} jobs", view.jobs.len()));
    check_ports(report, view);
    check_drops(report, view);
    group::check_members(report, view);
    for job in &view.jobs {
        if job.parent_lost {
            report.failed(
                "daemon-parent",
                format!("job {}: the parent switch does not answer", job.job),
                "run iswitchctl doctor --switch HOST:PORT on this machine, with the address of the parent switch",
            );
        }
        if let Some(waiting) = job.waiting.as_ref().filter(|waiting| waiting.waited_ms >= 1000) {
            let ids: Vec<_> = waiting.members.iter().map(AwaitedView::text).collect();
            let noun = if ids.len() == 1 { "member" } else { "members" };
            report.warning(
                "daemon-straggler",
                format!(
                    "job {} has been waiting {} ms for {noun} {}",
                    job.job,
                    waiting.waited_ms,
                    ids.join(", ")
                ),
                "find the addresses of these members with iswitchctl jobs, and check the machines at these addresses",
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
                format!(
                    "port {name} has a receive buffer of {bytes} bytes, expected at least {RECV_BUFFER_MIN_BYTES}: a \
                     small buffer limits the workers' windows"
                ),
                "run sysctl -w net.core.rmem_max=16777216, or start iswitchd with CAP_NET_ADMIN",
            );
        }
        let lost = value(&port.counters, "receive_buffer_drops");
        if lost > 0 {
            report.warning(
                "daemon-buffer",
                format!("port {name}: {lost} datagrams were lost because the receive buffer was full"),
                "raise --recv-buffer-bytes, and also net.core.rmem_max if the daemon does not run as root",
            );
        }
        let untagged = value(&port.counters, "untagged");
        if untagged > 0 {
            report.warning(
                "daemon-untagged",
                format!("port {name}: {untagged} datagrams arrived without an iSwitch ToS"),
                "a device on the path clears the ToS, or other programs send to this UDP port: to find out which, \
                 run iswitchctl doctor --answer 0.0.0.0:7712 here and iswitchctl doctor --peer on the workers",
            );
        }
    }
}

fn check_drops(report: &mut Report, view: &View) {
    const SIGNS: [(&str, &str); 5] = [
        (
            "not_authentic",
            "a worker's key differs from the switch's, or the packets are forged: compare the key files (--key-file)",
        ),
        (
            "wrong_version",
            "a worker and the switch run different releases: install the same release on all machines",
        ),
        (
            "fragment",
            "a link with a small MTU fragments packets: run iswitchctl doctor --switch on the workers to measure the \
             path MTU",
        ),
        ("other_port", "packets from one worker arrive on two ports: remove the second cable or the loop"),
        (
            "rate_limited",
            "non-members send too many packets, such as Joins: find the senders, or raise --join-rate",
        ),
    ];
    for (reason, fix) in SIGNS {
        let count = value(&view.drops, reason);
        if count > 0 {
            report.warning("daemon-drops", format!("{count} datagrams dropped: {reason}"), fix);
        }
    }
}
