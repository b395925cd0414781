//! The adder in rust-hdl's simulation, against the machine's own and another independent one.

use std::collections::VecDeque;

use hdl::adder::{Fp32Adder, LATENCY_CYCLES, add};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rust_hdl::prelude::*;
use rustc_apfloat::Float as _;
use rustc_apfloat::ieee::Single;

const EDGE_EXPONENTS: [u32; 9] = [0, 1, 2, 126, 127, 128, 253, 254, 255];
const EDGE_FRACTIONS: [u32; 5] = [0, 1, 0x40_0000, 0x55_5555, 0x7f_ffff];

/// Floats of which many are at an edge of the format.
fn float(rng: &mut ChaCha8Rng) -> u32 {
    let bits: u32 = rng.random();
    let exponent = match rng.random_range(0..4) {
        0 => return bits,
        1 => EDGE_EXPONENTS[rng.random_range(0..EDGE_EXPONENTS.len())],
        2 => rng.random_range(100..156),
        _ => rng.random_range(0..30),
    };
    let fraction = match rng.random_range(0..2) {
        0 => EDGE_FRACTIONS[rng.random_range(0..EDGE_FRACTIONS.len())],
        _ => bits & 0x7f_ffff,
    };
    bits & 0x8000_0000 | exponent << 23 | fraction
}

fn pair(rng: &mut ChaCha8Rng) -> (u32, u32) {
    let a = float(rng);
    let near = (a ^ 0x8000_0000).wrapping_add(rng.random_range(0..16)).wrapping_sub(8);
    if rng.random_range(0..8) == 0 { (a, near) } else { (a, float(rng)) }
}

fn apfloat_add(a: u32, b: u32) -> u32 {
    let sum = (Single::from_bits(a.into()) + Single::from_bits(b.into())).value;
    if sum.is_nan() { 0x7FC0_0000 } else { sum.to_bits() as u32 }
}

#[test]
fn the_contract_is_that_of_an_independent_adder() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..1_000_000 {
        let (a, b) = pair(&mut rng);
        assert_eq!(add(a, b), apfloat_add(a, b), "{a:08x} + {b:08x}");
    }
}

#[test]
fn one_sum_a_cycle_to_the_bit() {
    let mut adder = Fp32Adder::default();
    adder.connect_all();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut flying = VecDeque::new();
    for _ in 0..30_000 {
        let (a, b) = pair(&mut rng);
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
