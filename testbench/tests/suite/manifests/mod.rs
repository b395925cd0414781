//! Tests of the manifests for Kubernetes and of the script for Slurm: both are valid, and the processes that they start
//! train a policy.

use std::path::{Path, PathBuf};
use std::process::Command;

use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::ports::free_ports;
use iswitch_harness::process::{self, Process};
use iswitch_harness::requirements::{alone, programs, python_module};
use iswitch_harness::scratch;
use serde_json::Value;

const VALIDATE: &str = include_str!("validate.py");
/// Number of the manifest's actor processes that the test starts.
const ACTOR_PROCESSES: u64 = 2;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

/// Returns the manifests, if there is a Python interpreter that can validate them.
fn manifests(test: &str) -> Option<Vec<Value>> {
    let python = std::env::var("ISWITCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !python_module(test, &python, "kubernetes_validate", "kubernetes-validate") {
        return None;
    }
    let printed = process::run(Command::new(&python).args(["-c", VALIDATE]).arg(packaging("kubernetes")));
    Some(serde_json::from_str(&printed).expect(&printed))
}

#[test]
fn the_commands_of_the_manifests_train_an_agent() {
    let Some(manifests) = manifests("the_commands_of_the_manifests_train_an_agent") else { return };
    let _alone = alone();
    let directory = scratch::directory();
    let [switch, policies, cell, first, second] = free_ports();
    let run = directory.path().join("run").display().to_string();
    // Local replacements of the cluster's names and volumes.
    let replaced = [
        ("switch-0.switch:7711".to_owned(), format!("127.0.0.1:{switch}")),
        ("0.0.0.0:7711".to_owned(), format!("127.0.0.1:{switch}")),
        ("learner-0.learner:7720".to_owned(), format!("127.0.0.1:{policies}")),
        ("0.0.0.0:7720".to_owned(), format!("127.0.0.1:{policies}")),
        ("replay-0.replay:7800".to_owned(), format!("127.0.0.1:{first}")),
        ("replay-1.replay:7800".to_owned(), format!("127.0.0.1:{second}")),
        ("=cell:7721".to_owned(), format!("=127.0.0.1:{cell}")),
        ("0.0.0.0:7721".to_owned(), format!("127.0.0.1:{cell}")),
        ("/run/iswitch".to_owned(), run),
        ("--linger-s=30".to_owned(), "--linger-s=3".to_owned()),
    ];
    let spawn = |name: &str, index: u64, more: &[(String, String)]| {
        let mut command = container(&manifests, name, |argument| {
            let all = replaced.iter().chain(more);
            all.fold(argument.to_owned(), |text, (name, address)| text.replace(name, address))
        });
        match name {
            "learner" => _ = command.args(["--steps=20000", "--quiet"]),
            // Other tests also have a switch, so this one needs its own control socket.
            "switch" => _ = command.arg("--control-socket").arg(directory.path().join("switch.sock")),
            _ => {}
        }
        command.env("JOB_COMPLETION_INDEX", index.to_string());
        Process::spawn(&format!("{name} {index}"), &mut command)
    };
    let mut services = vec![spawn("switch", 0, &[]), spawn("cell", 0, &[])];
    for (index, port) in [(0, first), (1, second)] {
        let data = directory.path().join(format!("replay-{index}")).display().to_string();
        let more =
            [("0.0.0.0:7800".to_owned(), format!("127.0.0.1:{port}")), ("/var/lib/iswitch".to_owned(), data)];
        services.push(spawn("replay", index, &more));
    }
    let actors: Vec<_> = (0..ACTOR_PROCESSES).map(|index| spawn("actors", index, &[])).collect();
    let learners = [0, 1].map(|index| spawn("learner", index, &[]));
    let [result, nothing] = learners.map(|learner| learner.wait_success(6 * SOON));
    let result: Value = serde_json::from_str(&result).expect(&result);
    assert_eq!((&result["workers"], &result["replicas_identical"]), (&2.into(), &true.into()), "{result}");
    assert!(result["steps"].as_u64() >= Some(20_000) && nothing.is_empty(), "{result}");
    for (index, actors) in actors.into_iter().enumerate() {
        let reported = actors.wait_success(SOON);
        let reported: Value = serde_json::from_str(&reported).expect(&reported);
        // Each process has four actors.
        assert_eq!((&reported["actors"], &reported["first"]), (&4.into(), &(4 * index).into()), "{reported}");
        assert!(reported["items"].as_u64() > Some(0), "{reported}");
    }
}

/// Returns the command of the container with the given name, with the arguments as `adapt` returns them.
fn container(manifests: &[Value], name: &str, adapt: impl Fn(&str) -> String) -> Command {
    let containers =
        manifests.iter().filter_map(|it| it["spec"]["template"]["spec"]["containers"].as_array());
    let found = containers.flatten().find(|container| container["name"] == name);
    let container = found.unwrap_or_else(|| panic!("no container {name}"));
    let program = match container["command"][0].as_str() {
        Some("iswitch") => binaries::iswitch(),
        Some("iswitchd") => binaries::iswitchd(),
        other => panic!("container {name} runs {other:?}"),
    };
    let mut command = process::command(program);
    let arguments = container["args"].as_array().expect("arguments");
    command.args(arguments.iter().map(|argument| adapt(argument.as_str().expect("a text"))));
    command
}

/// Replacement of `srun` that starts the requested number of processes on this machine.
const SRUN: &str = r#"#!/bin/bash
count=1
while [[ $1 == --* ]]; do
    case $1 in --ntasks=*) count=${1#--ntasks=} ;; esac
    shift
done
children=()
trap 'kill "${children[@]}" 2>/dev/null' TERM
for ((rank = 0; rank < count; rank++)); do
    SLURM_PROCID=$rank SLURM_NTASKS=$count "$@" &
    children+=($!)
done
status=0
for child in "${children[@]}"; do wait "$child" || status=$?; done
exit $status
"#;

const SCONTROL: &str = "#!/bin/bash\n[ \"$1 $2\" = 'show hostnames' ] && tr , '\\n' <<<\"$3\"\n";

#[test]
fn the_commands_of_the_slurm_script_train_an_agent() {
    if !programs("the_commands_of_the_slurm_script_train_an_agent", &["bash", "shellcheck"]) {
        return;
    }
    let _alone = alone();
    let script = packaging("slurm/actor-learner.sbatch");
    process::run(Command::new("shellcheck").arg(&script));
    let directory = scratch::directory();
    for (name, text) in [("srun", SRUN), ("scontrol", SCONTROL)] {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        process::run(Command::new("chmod").arg("+x").arg(path));
    }
    for program in [binaries::iswitch(), binaries::iswitchd()] {
        let name = program.file_name().expect("a name");
        std::os::unix::fs::symlink(program, directory.path().join(name)).expect("a link");
    }
    // The script derives its ports from the job id; they lie below the range of client connections.
    let job = std::process::id().to_string();
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = process::command(&script);
    command.args(["dqn", "--steps", "20000", "--json", "--quiet", "--linger-s", "1"]);
    command.current_dir(directory.path()).env("PATH", path);
    command.env("TMPDIR", directory.path());
    command.env("ISWITCH_ACTORS", "2").env("SLURM_JOB_ID", job).env("SLURM_JOB_NODELIST", "127.0.0.1");
    let printed = Process::spawn("the Slurm script", &mut command).wait_success(6 * SOON);
    let result = printed.lines().find(|line| line.starts_with('{')).expect(&printed);
    let result: Value = serde_json::from_str(result).expect(&printed);
    assert_eq!((&result["workers"], &result["replicas_identical"]), (&2.into(), &true.into()), "{result}");
}
