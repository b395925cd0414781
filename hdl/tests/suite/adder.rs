//! Checks the adder, both in rust-hdl's simulation and in Verilog, against `hdl::adder::add`, and checks
//! `hdl::adder::add` against the independent implementation in `rustc_apfloat`.

use std::collections::VecDeque;

use hdl::adder::vectors::random_pair;
use hdl::adder::{Fp32Adder, LATENCY_CYCLES, add};
use hdl::verification::adder::{AdderError, Plan, build, verify, verilog};
use hdl::verification::faults::{ARGUMENT, Check, Fault, all, plant};
use iswitch_harness::requirements;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rust_hdl::prelude::*;
use rustc_apfloat::Float as _;
use rustc_apfloat::ieee::Single;

fn apfloat_add(a: u32, b: u32) -> u32 {
    let sum = (Single::from_bits(a.into()) + Single::from_bits(b.into())).value;
    if sum.is_nan() { 0x7FC0_0000 } else { sum.to_bits() as u32 }
}

#[test]
fn the_contract_agrees_with_an_independent_adder() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..1_000_000 {
        let (a, b) = random_pair(&mut rng);
        assert_eq!(add(a, b), apfloat_add(a, b), "{a:08x} + {b:08x}");
    }
}

#[test]
fn the_adder_produces_one_bit_exact_sum_per_cycle() {
    let mut adder = Fp32Adder::default();
    adder.connect_all();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut flying = VecDeque::new();
    for _ in 0..30_000 {
        let (a, b) = random_pair(&mut rng);
        adder.a.next = u64::from(a).into();
        adder.b.next = u64::from(b).into();
        adder.clock.next = Clock { clk: false };
        assert!(simulate(&mut adder, 50));
        flying.push_back((a, b));
        adder.clock.next = Clock { clk: true };
        assert!(simulate(&mut adder, 50));
        if flying.len() == LATENCY_CYCLES {
            let (a, b) = flying.pop_front().unwrap();
            assert_eq!(adder.sum.val().to_u32(), add(a, b), "{a:08x} + {b:08x}");
        }
    }
}

#[test]
fn the_verilog_adder_agrees_with_the_contract() {
    if !requirements::programs("the_verilog_adder_agrees_with_the_contract", &["verilator"]) {
        return;
    }
    let faults: Vec<_> = all().into_iter().filter(|fault| fault.found_by == Check::Adder).collect();
    let directory = tempfile::tempdir().unwrap();
    let program = build(&plant(&verilog(), &faults).unwrap(), directory.path()).unwrap();
    // `hdl verify-adder` adds all corner cases.
    let plan = Plan { random: 2_000_000, seed: 3, corner_step: 37 };
    let outcome = verify(&program, &[], plan, |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.sums, plan.pairs());
    assert!(outcome.nan > 0 && outcome.infinite > 0 && outcome.subnormal > 0, "{outcome:?}");
    for (at, Fault { name, .. }) in faults.iter().enumerate() {
        let error = verify(&program, &[format!("+{ARGUMENT}={}", at + 1)], plan, |_| {}).unwrap_err();
        assert!(matches!(error, AdderError::Mismatch { .. }), "{name}: {error}");
    }
}
