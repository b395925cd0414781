//! Tests of the timing estimate on netlists small enough for their delays to be added up by hand.

#![expect(clippy::needless_pass_by_value, reason = "netlists read better without borrows")]

use hdl::report::netlist::Netlist;
use hdl::report::timing::{Timing, TimingError, analyse};
use serde_json::{Value, json};

const TOLERANCE_NS: f64 = 1e-9;

/// Returns a cell. `inputs` and `outputs` give the name of each pin and the connections of its bits.
fn cell(primitive: &str, inputs: &[(&str, Value)], outputs: &[(&str, Value)]) -> Value {
    let directions = |pins: &[(&str, Value)], direction: &str| {
        pins.iter().map(|(pin, _)| ((*pin).to_owned(), json!(direction))).collect::<Vec<_>>()
    };
    let pins = [directions(inputs, "input"), directions(outputs, "output")].concat();
    let connections = inputs.iter().chain(outputs).map(|(pin, bits)| ((*pin).to_owned(), bits.clone()));
    json!({
        "type": primitive,
        "port_directions": pins.into_iter().collect::<serde_json::Map<_, _>>(),
        "connections": connections.collect::<serde_json::Map<_, _>>(),
    })
}

fn flip_flop(d: Value, q: usize) -> Value {
    let inputs = [("C", json!([2])), ("CE", json!(["1"])), ("D", json!([d])), ("R", json!(["0"]))];
    cell("FDRE", &inputs, &[("Q", json!([q]))])
}

fn lut2(a: Value, b: Value, o: usize) -> Value {
    cell("LUT2", &[("I0", json!([a])), ("I1", json!([b]))], &[("O", json!([o]))])
}

/// Returns a module with the given cells and a clock port on net 2. Nets 10 to 99 are named unit.n10 to unit.n99.
fn netlist(cells: Value) -> Netlist {
    let names: serde_json::Map<_, _> =
        (10..100).map(|net| (format!("unit.n{net}"), json!({"bits": [net]}))).collect();
    let module = json!({
        "ports": {"clock": {"direction": "input", "bits": [2]}},
        "cells": cells,
        "netnames": names,
    });
    Netlist::parse(&json!({"modules": {"top": module}}).to_string(), "top").unwrap()
}

fn timing(cells: Value) -> Result<Timing, TimingError> {
    analyse(&netlist(cells), 1.0, 5.0, 10)
}

#[track_caller]
fn assert_worst(timing: &Timing, expected_ns: f64) {
    let found = timing.worst_ns;
    assert!((found - expected_ns).abs() < TOLERANCE_NS, "{found} ns, expected {expected_ns}");
}

#[test]
fn register_lut_register() {
    // Net 11 drives two pins, which takes 0.36 ns. Net 12 drives only the D pin next to its LUT, without a delay.
    let cells = json!({
        "a": flip_flop(json!("0"), 10),
        "b": flip_flop(json!(11), 11),
        "lut": lut2(json!(10), json!(11), 12),
        "c": flip_flop(json!(12), 13),
    });
    let timing = timing(cells).unwrap();
    assert_worst(&timing, 0.216 + 0.36 + 0.05 + 0.04);
    assert_eq!((timing.endpoints, timing.over_budget), (2, 0));
    let worst = &timing.paths[0];
    assert_eq!((worst.from.as_str(), worst.to.as_str(), worst.levels), ("unit.n11", "unit.n13.D", 1));
    assert_eq!(worst.through, ["unit"]);
    assert_eq!(worst.fan_outs, [2, 1]);
}

#[test]
fn the_net_delay_factor_scales_net_delays() {
    let cells = json!({"a": flip_flop(json!("0"), 10), "c": flip_flop(json!(10), 13)});
    let slow = analyse(&netlist(cells), 1.3, 0.5, 10).unwrap();
    assert_worst(&slow, 0.216 + 1.3 * 0.30 + 0.04);
    assert_eq!(slow.over_budget, 1);
    assert_eq!(slow.paths[0].over_budget, 1);
}

#[test]
fn a_carry_chain_is_fast_between_blocks() {
    let block = |s: Value, ci: Value, co: Value, o: Value| {
        let inputs = [("S", s), ("DI", json!(["0", "0", "0", "0"])), ("CI", ci), ("CYINIT", json!(["0"]))];
        cell("CARRY4", &inputs, &[("CO", co), ("O", o)])
    };
    let cells = json!({
        "a": flip_flop(json!("0"), 10),
        "low": block(json!([10, "0", "0", "0"]), json!(["0"]), json!([20, 21, 22, 23]), json!([30, 31, 32, 33])),
        "high": block(json!(["0", "0", "0", "0"]), json!([23]), json!([24, 25, 26, 27]), json!([34, 35, 36, 37])),
        "c": flip_flop(json!(37), 13),
    });
    // The flip-flop reaches S through a LUT, and the carry takes three steps from S[0] to CO[3].
    assert_worst(&timing(cells).unwrap(), 0.216 + 0.30 + 0.05 + (0.27 + 3.0 * 0.02) + 0.20 + 0.04);
}

#[test]
fn block_ram_is_slow() {
    let inputs = [("CLKARDCLK", json!([2])), ("ADDRARDADDR", json!([10]))];
    let cells = json!({
        "a": flip_flop(json!("0"), 10),
        "ram": cell("RAMB36E1", &inputs, &[("DOADO", json!([20]))]),
        "c": flip_flop(json!(20), 13),
    });
    let timing = timing(cells).unwrap();
    assert_worst(&timing, 1.564 + 0.30 + 0.04);
    assert!((timing.paths[1].delay_ns - (0.216 + 0.30 + 0.42)).abs() < TOLERANCE_NS);
}

#[test]
fn lut_memory_has_read_and_write_paths() {
    let inputs = [
        ("WCLK", json!([2])),
        ("WE", json!(["1"])),
        ("ADDRA", json!([10])),
        ("ADDRD", json!([10])),
        ("DIA", json!([11])),
    ];
    let cells = json!({
        "a": flip_flop(json!("0"), 10),
        "b": flip_flop(json!("0"), 11),
        "ram": cell("RAM32M", &inputs, &[("DOA", json!([20]))]),
        "c": flip_flop(json!(20), 13),
    });
    // A word that is being written appears later than a word whose address has changed.
    let timing = timing(cells).unwrap();
    assert_worst(&timing, 1.0 + 0.30 + 0.04);
    assert!((timing.paths[1].delay_ns - (0.216 + 0.36 + 0.15)).abs() < TOLERANCE_NS);
}

#[test]
fn logic_on_constants_forms_no_timing_path() {
    let cells = json!({"lut": lut2(json!("0"), json!("1"), 12), "c": flip_flop(json!(12), 13)});
    assert_eq!(timing(cells).unwrap().endpoints, 0);
}

#[test]
fn combinational_loops_are_reported() {
    let cells = json!({
        "a": flip_flop(json!("0"), 10),
        "x": lut2(json!(10), json!(13), 11),
        "y": lut2(json!(10), json!(11), 12),
        "z": lut2(json!(10), json!(12), 13),
        "behind": lut2(json!(10), json!(13), 14),
        "c": flip_flop(json!(14), 15),
    });
    let Err(TimingError::Loop(nets)) = timing(cells) else { panic!("a loop") };
    let mut nets = nets;
    nets.sort();
    assert_eq!(nets, ["unit.n11", "unit.n12", "unit.n13"]);
}

#[test]
fn primitives_unknown_to_the_timing_model_are_errors() {
    let unknown = |cells| timing(cells).unwrap_err().to_string();
    let cells = json!({"odd": cell("DSP48E1", &[], &[("P", json!([10]))])});
    assert_eq!(unknown(cells), "the timing model has no entry for primitive DSP48E1 (of cell odd)");
    let cells = json!({"odd": cell("LUT2", &[("I2", json!([2]))], &[("O", json!([10]))])});
    assert_eq!(unknown(cells), "the timing model has no entry for pin I2 of primitive LUT2");
    let cells = json!({"c": flip_flop(json!(12), 13)});
    assert_eq!(unknown(cells), "the net unit.n12 has no driver, expected one");
    let cells = json!({"a": flip_flop(json!("0"), 10), "b": flip_flop(json!("0"), 10)});
    assert_eq!(unknown(cells), "the net unit.n10 has two drivers, expected one");
}
