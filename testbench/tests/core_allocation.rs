//! The core does not allocate while it sums super-frames, in any mode.

use std::alloc::System;

use iswitch_simulation::core_load::{Load, LoadMode, Shape};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use strum::IntoEnumIterator as _;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of attempts. The test harness has a thread of its own that occasionally allocates; an allocation of the core
/// would occur in every attempt.
const ATTEMPTS: usize = 5;
const ROUNDS: usize = 3;

/// Returns the number of allocations and reallocations in several rounds. In each round, every member sends full
/// super-frames and one that is not full.
fn allocations(mode: LoadMode, members: usize) -> usize {
    let shape = Shape::new(mode, members, 100);
    let mut load = Load::new(shape);
    let region = Region::new(ALLOCATOR);
    let mut results = 0;
    for _ in 0..ROUNDS {
        load.prepare();
        results += load.run();
    }
    let change = region.change();
    load.check(ROUNDS);
    assert_eq!(results, ROUNDS * shape.segments);
    change.allocations + change.reallocations
}

#[test]
fn nothing_is_allocated_for_super_frames_in_any_mode() {
    for mode in LoadMode::iter() {
        for members in [1, 4, 64] {
            let least = (0..ATTEMPTS).map(|_| allocations(mode, members)).min();
            assert_eq!(least, Some(0), "{mode}, {members} members");
        }
    }
}
