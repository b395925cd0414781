//! Checks of group delivery: the bridges and the firewall of this machine, and the members that do not receive the
//! packets sent to the multicast group of their job.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::finding::Report;
use crate::view::{JobView, View};

/// Name of the bridge checks.
const BRIDGE: &str = "group-bridge";
/// Name of the firewall check.
const FIREWALL: &str = "group-firewall";
const INTERFACES: &str = "/sys/class/net";

/// Checks this machine.
pub(super) fn check_host(report: &mut Report) {
    check_bridges(report, Path::new(INTERFACES));
    check_firewall(report);
}

/// Checks that each bridge that snoops IGMP has a querier. Without a querier, the bridge forgets after some minutes
/// which hosts have subscribed to a group.
fn check_bridges(report: &mut Report, interfaces: &Path) {
    let entries = fs::read_dir(interfaces).into_iter().flatten().flatten();
    let mut bridges: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.join("bridge").exists()).collect();
    bridges.sort();
    for bridge in bridges {
        let read = |file: &str| fs::read_to_string(bridge.join("bridge").join(file)).unwrap_or_default();
        let is_on = |file: &str| read(file).trim() == "1";
        let name = bridge.file_name().unwrap_or_default().to_string_lossy();
        if !is_on("multicast_snooping") {
            report.ok(BRIDGE, format!("{name} floods multicast packets to all its ports"));
        } else if is_on("multicast_querier") {
            report.ok(BRIDGE, format!("{name} snoops IGMP and is a querier"));
        } else {
            report.warning(
                BRIDGE,
                format!(
                    "{name} snoops IGMP but is not a querier, so it may stop forwarding packets to the multicast \
                     groups of jobs"
                ),
                format!(
                    "run ip link set {name} type bridge mcast_querier 1, unless another device on this network is a \
                     querier"
                ),
            );
        }
    }
}

/// Warns if an nftables chain drops input by default and no rule mentions a multicast address.
fn check_firewall(report: &mut Report) {
    let output = Command::new("nft").args(["list", "ruleset"]).output();
    let Ok(output) =
        output.map_err(drop).and_then(|output| output.status.success().then_some(output).ok_or(()))
    else {
        return report.skipped(FIREWALL, "cannot list the nftables rules (this needs root and nft)");
    };
    let rules = String::from_utf8_lossy(&output.stdout);
    if may_drop_groups(&rules) {
        return report.warning(
            FIREWALL,
            "an nftables chain drops input by default, and no rule mentions a multicast address",
            "on workers, accept UDP packets from the switch to 239.192.0.0/14, ports 61000 to 65535; \
             otherwise, the workers receive results by unicast",
        );
    }
    report.ok(FIREWALL, "no nftables chain appears to drop multicast packets");
}

fn may_drop_groups(rules: &str) -> bool {
    let drops = rules.lines().any(|line| line.contains("hook input") && line.contains("policy drop"));
    drops && !["239.", "224.", "pkttype multicast"].iter().any(|text| rules.contains(text))
}

/// Reports the members that receive results by unicast although their job has a multicast group.
pub(super) fn check_members(report: &mut Report, view: &View) {
    for job in view.jobs.iter().filter(|job| job.group.is_some()) {
        check_job(report, job);
    }
}

fn check_job(report: &mut Report, job: &JobView) {
    const CHECK: &str = "daemon-group";
    let (number, count) = (job.job, job.members.len());
    let deaf: Vec<_> = job.members.iter().filter(|member| !member.hears_group).collect();
    if deaf.is_empty() {
        return report.ok(
            CHECK,
            format!("job {number}: all {count} members receive results through the multicast group"),
        );
    }
    let addresses: Vec<_> = deaf.iter().map(|member| member.address.as_str()).collect();
    report.warning(
        CHECK,
        format!(
            "job {number}: {} of {count} members do not receive results through the multicast group: {}",
            deaf.len(),
            addresses.join(", ")
        ),
        "run iswitchctl doctor on the machines of these members, and check the bridges between them and the switch; \
         members that have just joined take a moment to subscribe",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_snooping_bridge_without_a_querier_causes_a_warning() {
        let directory = tempfile::tempdir().unwrap();
        for (bridge, snooping, querier) in [("br0", "0", "0"), ("br1", "1", "1"), ("br2", "1", "0")] {
            let path = directory.path().join(bridge).join("bridge");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("multicast_snooping"), snooping).unwrap();
            fs::write(path.join("multicast_querier"), querier).unwrap();
        }
        fs::create_dir_all(directory.path().join("eth0")).unwrap();
        let mut report = Report::default();
        check_bridges(&mut report, directory.path());
        let text = report.text();
        assert!(
            text.contains("br2 snoops IGMP but is not a querier")
                && text.contains("3 checks, 0 failed, 1 warnings")
        );
    }

    #[test]
    fn a_default_drop_without_an_exception_for_groups_is_noticed() {
        let drop = "chain input {\n type filter hook input priority 0; policy drop;\n";
        assert!(may_drop_groups(drop));
        assert!(!may_drop_groups(&format!("{drop} ip daddr 239.192.0.0/14 accept\n")));
        assert!(!may_drop_groups("type filter hook input priority 0; policy accept;"));
    }

    #[test]
    fn members_that_hear_no_group_are_named() {
        let mut view: View = serde_json::from_str(include_str!("../../fixtures/snapshot-2.json")).unwrap();
        let report_of = |view: &View| {
            let mut report = Report::default();
            check_members(&mut report, view);
            report.text()
        };
        assert!(report_of(&view).contains("0 checks"), "a job without a group needs no check");
        view.jobs[0].group = Some("239.192.0.1:61000".to_owned());
        assert!(
            report_of(&view).contains(
                "4 of 4 members do not receive results through the multicast group: 10.9.0.1:40000"
            )
        );
        view.jobs[0].members.iter_mut().for_each(|member| member.hears_group = true);
        assert!(report_of(&view).contains("all 4 members receive results through the multicast group"));
    }
}
