//! A job beside others that misbehave: it goes on, and its sums stay exact. How much it loses is measured by
//! `testbench neighbour`. Needs root.

use iswitch_testbench::cluster::PortKind;
use iswitch_testbench::neighbour::{Attack, Load, Site};
use iswitch_testbench::requirements::{alone, report, root_and};

const LOAD: Load = Load { workers: 2, floats: 10_119, seconds: 1.0 };

#[test]
fn no_neighbour_starves_a_job_or_changes_a_sum() {
    if !root_and("no_neighbour_starves_a_job_or_changes_a_sum", &[]) {
        return;
    }
    let _alone = alone();
    let site = Site::new(LOAD.workers, PortKind::Raw);
    // Limits on strangers may hold up a newcomer among many of them: that is measured only.
    for attack in Attack::ALL.into_iter().filter(|attack| *attack != Attack::ForgedJoinsFirst) {
        let run = site.run(Some(attack), LOAD).unwrap_or_else(|error| panic!("{error}"));
        report(&format!("{attack}: {:.0} attacks/s, {:.0} rounds/s", run.attacks_per_s, run.rounds_per_s));
        assert!(run.attacks_per_s > 0.0, "{attack}: nothing was sent");
        assert!(run.is_exact, "{attack}: a sum is wrong, or a worker gave up");
        assert!(run.rounds_per_s > 0.0, "{attack}: the job is starved: {:?}", run.failure);
    }
}
