//! Fuzz target: the whole switch core. `docs/fuzzing.md` describes how to run it.

mod host;
mod marked;
mod operation;
mod parent;
mod world;

use operation::Scenario;
use world::World;

/// In every scenario, nothing panics, sums are exact and do not change, counters are correct, quotas are respected, and
/// all memory is free at the end.
#[test]
fn whole_core() {
    bolero::check!().with_iterations(200).with_type::<Scenario>().for_each(|scenario| {
        let mut world = World::new(&scenario.setup);
        scenario.operations.iter().for_each(|operation| world.perform(operation));
        world.end();
    });
}
