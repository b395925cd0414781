//! Tests that a job continues and that its sums remain exact while other jobs misbehave. `testbench neighbour` measures
//! how much those jobs slow it down. Needs root.

use iswitch_harness::cluster::PortKind;
use iswitch_harness::requirements::{alone, networks_and, report};
use iswitch_testbench::neighbour::{Attack, Load, Testbed};
use strum::VariantArray as _;

const LOAD: Load = Load { workers: 2, floats: 10_119, seconds: 1.0 };
/// Rate of rounds, relative to the job's rate when it runs alone, below which the job counts as starved. With a fair
/// share of a core, a job reaches one half; without the switch's limits on the work per job, it reaches less than a
/// hundredth.
const STARVED: f64 = 1.0 / 50.0;

#[test]
fn no_neighbour_starves_a_job_or_changes_a_sum() {
    if !networks_and("no_neighbour_starves_a_job_or_changes_a_sum", &[]) {
        return;
    }
    let _alone = alone();
    let testbed = Testbed::new(LOAD.workers, PortKind::Raw);
    let alone = testbed.run(None, LOAD).unwrap_or_else(|error| panic!("{error}")).rounds_per_s;
    // Limits on non-members may delay a joining worker among many forged Joins, so that attack is only measured.
    for attack in Attack::VARIANTS.iter().copied().filter(|attack| *attack != Attack::ForgedJoinsFirst) {
        let run = testbed.run(Some(attack), LOAD).unwrap_or_else(|error| panic!("{error}"));
        let (attacks, rounds) = (run.attacks_per_s, run.rounds_per_s);
        report(&format!("{attack}: {attacks:.0} attacks/s, {rounds:.0} rounds/s, alone {alone:.0}"));
        assert!(attacks > 0.0, "{attack}: nothing was sent");
        assert!(run.is_exact, "{attack}: a sum is wrong, or a worker gave up");
        assert!(rounds > alone * STARVED, "{attack}: {rounds} rounds/s, alone {alone}: {:?}", run.failure);
    }
}
