//! An operator's actions, one of each kind, on a daemon that serves two jobs.

use iswitch_harness::requirements::{networks_and, together};
use iswitch_testbench::contest::Progress;
use iswitch_testbench::year::{Action, Plan, run};
use strum::VariantArray as _;

#[test]
fn jobs_survive_every_action_of_an_operator() {
    let test = "jobs_survive_every_action_of_an_operator";
    if !networks_and(test, &["nft", "setpriv"]) {
        return;
    }
    let _together = together();
    let plan = Plan::new(2, 2, Action::VARIANTS.len(), 20_261_127);
    let table = run(&plan, &Progress::silent()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(table.pauses.len(), Action::VARIANTS.len());
    assert!(table.rounds > 1000, "{} rounds", table.rounds);
    eprintln!("{}", table.text());
}
