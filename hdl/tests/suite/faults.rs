//! Checks that every fault in hdl/faults.toml can be inserted into the RTL.

use std::collections::HashSet;

use hdl::accelerator::Build;
use hdl::generate;
use hdl::verification::adder;
use hdl::verification::faults::{Check, all, plant};
use hdl::verification::modules::MODULES;

#[test]
fn every_fault_applies_to_the_rtl() {
    let faults = all();
    let names: HashSet<_> = faults.iter().map(|fault| &fault.name).collect();
    assert_eq!(names.len(), faults.len(), "names are unique");
    for (check, verilog) in
        [(Check::Lockstep, generate::accelerator(Build::Slots128)), (Check::Adder, adder::verilog())]
    {
        let of_check: Vec<_> = faults.iter().filter(|fault| fault.found_by == check).cloned().collect();
        assert!(!of_check.is_empty(), "{check:?}");
        plant(&verilog, &of_check).unwrap_or_else(|error| panic!("{error}"));
    }
    for fault in faults.iter().filter(|fault| fault.found_by == Check::Modules) {
        let module = MODULES.iter().find(|module| fault.module.starts_with(module.name)).unwrap();
        fault.apply(&module.trace(1, 0).verilog).unwrap_or_else(|error| panic!("{error}"));
    }
}
