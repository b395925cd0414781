//! Simulation of the store on an in-memory disk that can fail and can tear, lose or damage data. A seed determines
//! each simulated world: the same seed produces the same faults at the same operations.
//!
//! `STORAGE_SEEDS=FROM..TO cargo test --release -p iswitch-replay storage_faults` selects
//! other seeds.

pub(crate) mod disk;
mod model;
mod world;

use std::ops::Range;

pub(crate) use self::model::records;
use self::world::{Summary, run};

/// Range of seeds that a test run uses by default.
const SEEDS: Range<u64> = 0..3_000;
/// Environment variable that selects other seeds, such as `0..100`.
const SEEDS_VARIABLE: &str = "STORAGE_SEEDS";

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var(SEEDS_VARIABLE) else { return SEEDS };
    let parsed = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.unwrap_or_else(|| panic!("{SEEDS_VARIABLE} is {text:?}, expected FROM..TO"))
}

#[test]
fn storage_faults_neither_lose_nor_alter_acknowledged_items() {
    let mut total = Summary::default();
    for seed in seeds() {
        let world = run(seed).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        total.acknowledged += world.acknowledged;
        total.ends += world.ends;
        total.damages += world.damages;
        total.failures += world.failures;
        total.recovered += world.recovered;
        total.snapshots += world.snapshots;
        total.kept_files += world.kept_files;
    }
    println!("{total:?}");
    // Check that each kind of fault has occurred.
    let kinds =
        [total.ends, total.damages, total.failures, total.recovered, total.snapshots, total.kept_files];
    assert!(kinds.iter().all(|count| *count > 0), "{total:?}");
}

#[test]
fn a_seed_determines_the_whole_run() {
    let world = |seed| format!("{:?}", run(seed).unwrap());
    assert_eq!(world(7), world(7));
    assert_ne!(world(7), world(8));
}
