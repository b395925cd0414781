//! Compares the rust-hdl simulation of every module with its generated Verilog, simulated by Icarus Verilog.

use std::collections::HashSet;

use hdl::accelerator::{Build, IswitchAccel};
use hdl::verification::modules::{MODULES, Module, ModulesError, compare, signatures};
use iswitch_harness::requirements;

const CYCLES: usize = 2_000;
/// Number of cycles for the modules that contain all others. These modules simulate slowly and are mostly idle with
/// random inputs; `testbench lockstep` tests them thoroughly.
const FEW_CYCLES: usize = 300;
const HOLD_OTHERS: [&str; 2] = ["datapath", "iswitch_accel"];
const SEED: u64 = 1;

fn module(name: &str) -> &'static Module {
    MODULES.iter().find(|module| module.name == name).unwrap()
}

#[test]
fn the_simulation_of_every_module_matches_its_verilog() {
    if !requirements::programs("the_simulation_of_every_module_matches_its_verilog", &["iverilog", "vvp"]) {
        return;
    }
    let cycles = |name| if HOLD_OTHERS.contains(&name) { FEW_CYCLES } else { CYCLES };
    let traces: Vec<_> = MODULES.iter().map(|module| module.trace(cycles(module.name), SEED)).collect();
    for trace in traces.iter().filter(|trace| !HOLD_OTHERS.contains(&trace.name)) {
        let constant = trace.constant_outputs();
        assert!(2 * constant.len() < trace.outputs().count(), "{}: {constant:?} never change", trace.name);
    }
    let directory = tempfile::tempdir().unwrap();
    compare(&traces, directory.path()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_comparison_detects_changed_verilog() {
    if !requirements::programs("the_comparison_detects_changed_verilog", &["iverilog", "vvp"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, search, replace) in [
        ("scoreboard", "~blocked$q", "blocked$q"),
        ("fifo", "count$q + 32'h1", "count$q + 32'h2"),
        ("seg_decoder", "<< 32'h10", "<< 32'hf"),
        ("round", "32'h7fc00000", "32'h7fc00001"),
    ] {
        let mut trace = module(name).trace(CYCLES, SEED);
        assert!(trace.verilog.contains(search), "{name}");
        trace.verilog = trace.verilog.replacen(search, replace, 1);
        // A correct module comes first, to check that the error names the faulty one.
        let traces = [module("merge").trace(CYCLES, SEED), trace];
        match compare(&traces, directory.path()) {
            Err(ModulesError::Different { module, .. }) => assert_eq!(module, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn every_hardware_module_is_tested() {
    let tested: HashSet<_> = MODULES.iter().map(|module| module.trace(1, SEED).signature()).collect();
    let register: Vec<_> = ["in clock", "in d", "out q"].map(str::to_owned).into();
    for (path, signature) in signatures("iswitch_accel", &IswitchAccel::new(Build::Slots128)) {
        assert!(tested.contains(&signature) || signature == register, "{path} is missing from MODULES");
    }
}
