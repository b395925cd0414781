//! Tests that each command writes its own man pages and shell completions, and that these are readable.

use std::fs;
use std::path::Path;
use std::process::Command;

use iswitch_harness::binaries;
use iswitch_harness::process::{command, run};
use iswitch_harness::requirements::programs;

/// Returns the names and paths of the commands that users run.
pub(super) fn commands() -> [(&'static str, &'static Path); 15] {
    [
        ("iswitchd", binaries::iswitchd()),
        ("iswitchctl", binaries::iswitchctl()),
        ("iswitch", binaries::iswitch()),
        ("iswitch-actors", binaries::path("iswitch-actors")),
        ("iswitch-coflow", binaries::path("iswitch-coflow")),
        ("iswitch-export", binaries::path("iswitch-export")),
        ("iswitch-lab", binaries::path("iswitch-lab")),
        ("iswitch-place", binaries::path("iswitch-place")),
        ("iswitch-plot", binaries::path("iswitch-plot")),
        ("iswitch-route", binaries::path("iswitch-route")),
        ("iswitch-study", binaries::path("iswitch-study")),
        ("iswitch-sweep", binaries::path("iswitch-sweep")),
        ("iswitch-video", binaries::path("iswitch-video")),
        ("iswitch-models", binaries::iswitch_models()),
        ("replayd", binaries::replayd()),
    ]
}

/// Returns the names of the long options in a command's help.
fn long_options(help: &str) -> Vec<&str> {
    let words = help.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    words.map(|word| word.split(['=', ',', '[']).next().unwrap_or(word).trim_end_matches('.')).collect()
}

#[test]
fn every_command_writes_its_manual_and_completions() {
    let test = "every_command_writes_its_manual_and_completions";
    if !programs(test, &["groff", "bash", "setpriv"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, path) in commands() {
        run(command(path).arg("--write-manual").arg(directory.path()));
        let page = directory.path().join(format!("man/{name}.1"));
        let read =
            Command::new("groff").args(["-man", "-Tascii", "-ww", "-P-c"]).arg(&page).output().unwrap();
        let errors = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() && errors.is_empty(), "{name}: {errors}");
        let text = String::from_utf8_lossy(&read.stdout).into_owned();
        // groff prints bold letters twice, and may break a long option at a hyphen.
        let mut plain = String::new();
        for letter in text.chars().filter(|letter| !letter.is_whitespace()) {
            if letter == '\u{8}' { _ = plain.pop() } else { plain.push(letter) }
        }
        for option in long_options(&run(command(path).arg("--help"))) {
            assert!(plain.contains(option), "{option} of {name} is not in {plain}");
        }
        let completion = directory.path().join(format!("bash/{name}.bash"));
        run(command("bash").arg("-n").arg(&completion));
        for file in [format!("zsh/_{name}"), format!("fish/{name}.fish")] {
            assert!(fs::read_to_string(directory.path().join(&file)).unwrap().contains(name), "{file}");
        }
    }
    for page in ["iswitchctl-doctor.1", "iswitchctl-top.1", "iswitch-train-ppo.1", "iswitch-models-serve.1"] {
        assert!(directory.path().join("man").join(page).exists(), "{page}");
    }
}
