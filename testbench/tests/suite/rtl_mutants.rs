//! Tests of the criteria by which a fault in the RTL counts as detected.

use hdl::verification::faults::{Check, Fault};
use iswitch_harness::requirements;
use iswitch_testbench::rtl_mutants::{Bench, Effort, Outcome, select};

fn fault(search: &str, replace: &str) -> Fault {
    Fault {
        name: format!("{search} becomes {replace}"),
        what: String::new(),
        found_by: Check::Modules,
        module: "scoreboard".into(),
        search: search.into(),
        replace: replace.into(),
    }
}

#[test]
fn only_a_difference_counts_as_detected() {
    if !requirements::programs("only_a_difference_counts_as_detected", &["iverilog", "vvp"]) {
        return;
    }
    let faults = vec![
        fault("hazard = waiting$q & blocked$q;", "hazard = waiting$q | blocked$q;"),
        fault("hazard = waiting$q & blocked$q;", "hazard = blocked$q & waiting$q;"),
        fault("hazard = waiting$q & blocked$q;", "hazard = ;"),
        fault("no such text", ""),
    ];
    let bench = Bench::build(faults, Effort { packets: 1, pairs: 1, cycles: 500, seed: 0 }).unwrap();
    bench.control().unwrap();
    let outcomes: Vec<_> = bench.faults().iter().map(|fault| bench.attempt(fault).outcome).collect();
    assert!(matches!(outcomes[0], Outcome::Found { .. }), "{:?}", outcomes[0]);
    assert_eq!(outcomes[1], Outcome::Survived);
    for (outcome, word) in outcomes[2..].iter().zip(["iverilog", "0 times"]) {
        let Outcome::Failed { error } = outcome else { panic!("{outcome:?}") };
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn an_unknown_fault_is_refused() {
    let faults = vec![fault("a", "b")];
    assert_eq!(select(faults.clone(), &[]).unwrap(), faults);
    let error = select(faults, &["other".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("\"other\"") && error.contains("a becomes b"), "{error}");
}
