//! Tests of a job that mpirun launches with one rank in each worker namespace. The only option passed to the program is
//! the address of the switch. Needs root and Open MPI.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, times, total};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::process::Process;
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_harness::scratch;

const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn sums_of_a_job_launched_by_mpirun_are_exact() {
    if !networks_and("sums_of_a_job_launched_by_mpirun_are_exact", &["mpirun"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &[]);
    let switch = daemon.address().to_string();
    let text = mpirun(&star, binaries::all_reduce(), &["--switch", &switch, "--json"]);
    let results: Vec<_> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(results.len(), 4, "{text}");
    assert_eq!(total(&results, "rank"), 1 + 2 + 3);
    assert_eq!(total(&results, "rounds"), 4 * 100);
    report(&format!("mpirun -np 4: {}", times(&results)));
    daemon.stop();
}

#[test]
fn a_training_launched_by_mpirun_keeps_replicas_identical() {
    if !networks_and("a_training_launched_by_mpirun_keeps_replicas_identical", &["mpirun"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::on_ports(&star, &[]);
    let switch = daemon.address().to_string();
    let directory = scratch::directory();
    let out = directory.path().join("run").display().to_string();
    let arguments = ["train", "ppo", "--switch", &switch, "--steps", "20000", "--json", "--out", &out];
    let text = mpirun(&star, binaries::iswitch(), &arguments);
    let results: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [result] = &results[..] else { panic!("one rank prints the result of all: {text}") };
    assert_eq!((&result["workers"], &result["replicas_identical"]), (&4.into(), &true.into()), "{result}");
    assert_eq!(result["aggregator"], "switch");
    report(&format!("mpirun -np 4 iswitch train ppo: {result}"));
    daemon.stop();
}

/// Runs mpirun in the namespace of a star's first worker. It starts a program on each worker. Returns the output of all
/// ranks.
fn mpirun(star: &Star, program: &Path, arguments: &[&str]) -> String {
    let directory = scratch::directory();
    let agent = write_agent(star, directory.path());
    let addresses = (0..star.workers.len()).map(|worker| Star::worker_address(worker).to_string());
    let hosts: Vec<_> = addresses.collect();
    let mut command = star.workers[0].command("mpirun");
    command.env("TMPDIR", directory.path());
    command.args(["--allow-run-as-root", "-np", &hosts.len().to_string(), "--host", &hosts.join(",")]);
    command.args(["--mca", "oob_tcp_if_include", "10.9.0.0/24", "--mca", "plm_rsh_agent"]).arg(agent);
    // The daemons of Open MPI share a file with the topology of their machine, and crash if several start at once.
    command.args(["--mca", "rtc", "^hwloc"]);
    command.arg(program).args(arguments);
    Process::spawn("mpirun", &mut command).wait_success(TIMEOUT)
}

/// Writes a substitute for ssh. Instead of connecting to a host, it runs the command in the namespace of the worker
/// with the given address.
fn write_agent(star: &Star, directory: &Path) -> PathBuf {
    let cases = star.workers.iter().enumerate().map(|(worker, namespace)| {
        format!("{}) namespace={} ;;\n", Star::worker_address(worker), namespace.name())
    });
    let cases: String = cases.collect();
    let directory_text = directory.display();
    let script = format!(
        "#!/bin/sh\ncase $1 in\n{cases}*) exit 1 ;;\nesac\nTMPDIR={directory_text}/$1\nexport TMPDIR\n\
         mkdir -p $TMPDIR\nshift\nexec ip netns exec $namespace sh -c \"$*\"\n"
    );
    let path = directory.join("agent");
    std::fs::write(&path, script).expect("the agent must be written");
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("the permissions must be set");
    path
}
