//! Short attacks on real daemons; `testbench attack` runs them for longer. Needs root.

use iswitch_harness::requirements::{alone, networks_and, report};
use iswitch_testbench::attack::{ALL, Effort};

#[test]
fn promises_hold_under_each_attack() {
    if !networks_and("promises_hold_under_each_attack", &["ethtool", "ping"]) {
        return;
    }
    let _alone = alone();
    let mut broken = Vec::new();
    // The attacks of neighbours have their own test.
    for attack in ALL.iter().filter(|attack| attack.name != "neighbours") {
        let outcome = attack.run(&Effort::QUICK);
        report(&format!("{}: {:?}, {:.1} s", attack.name, outcome.verdict, outcome.elapsed.as_secs_f64()));
        broken.extend(outcome.verdict.err().map(|why| format!("{}: {why}", attack.name)));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
