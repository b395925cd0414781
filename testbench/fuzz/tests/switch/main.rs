//! Fuzz target: the whole switch core. `docs/fuzzing.md` says how to run it.

mod host;
mod marked;
mod operation;
mod parent;
mod world;

use operation::Scenario;
use world::World;

/// Whatever happens: nothing panics, sums are exact and do not change, counters and quotas hold, and in the end all
/// memory is back.
#[test]
fn whole_core() {
    bolero::check!().with_iterations(200).with_type::<Scenario>().for_each(|scenario| {
        let mut world = World::new(&scenario.setup);
        scenario.operations.iter().for_each(|operation| world.perform(operation));
        world.end();
    });
}
