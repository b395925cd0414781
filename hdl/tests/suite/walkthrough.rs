//! Tests of `hdl simulate`, both of the cycles that it reports for a segment and of the waveforms that it writes.

use std::fs;

use hdl::accelerator::Build;
use hdl::walkthrough::{Walkthrough, WalkthroughError};

fn walkthrough(workers: u8, floats: u16) -> Walkthrough {
    Walkthrough { build: Build::Slots128, workers, floats, seed: 1, vcd: None, svg: None }
}

#[test]
fn frames_of_the_full_mtu_pass_without_a_gap() {
    let timings = walkthrough(4, 366).run().unwrap();
    let ends: Vec<_> = timings.contributions.iter().map(|span| span.last_cycle).collect();
    // A frame of 1,514 bytes takes 48 beats, and the ordinary frame of 96 bytes takes three.
    assert_eq!(ends, [47, 95, 143, 194]);
    assert_eq!(timings.result.last_cycle - timings.result.first_cycle, 47);
    assert!(timings.ordinary_out.last_cycle < timings.result.first_cycle);
    assert_eq!(timings.latency_cycles, timings.result.last_cycle - 194);
}

#[test]
fn one_worker_with_one_float_is_answered() {
    let timings = walkthrough(1, 1).run().unwrap();
    assert_eq!(timings.contributions.len(), 1);
    assert!(timings.result.first_cycle > timings.ordinary_out.last_cycle);
}

#[test]
fn the_waveforms_show_the_result() {
    let directory = tempfile::tempdir().unwrap();
    let (vcd, svg) = (directory.path().join("a.vcd"), directory.path().join("a.svg"));
    let shown = Walkthrough { vcd: Some(vcd.clone()), svg: Some(svg.clone()), ..walkthrough(2, 8) };
    shown.run().unwrap();
    let (vcd, svg) = (fs::read_to_string(vcd).unwrap(), fs::read_to_string(svg).unwrap());
    assert!(vcd.contains("$timescale 1 ps $end") && vcd.contains("m_axis_tlast"));
    for text in ["Seg counter: judge", "burst waits (hazard)", "contribution 1", "Time (cycles of 5 ns)"] {
        assert!(svg.contains(&format!("\n{text}\n")), "{text} is not in {svg}");
    }
}

#[test]
fn a_trace_that_cannot_be_written_names_its_file() {
    let path = "/dev/full/a.vcd".into();
    let error = Walkthrough { vcd: Some(path), ..walkthrough(1, 1) }.run().unwrap_err();
    assert!(matches!(error, WalkthroughError::Write { .. }) && error.to_string().contains("/dev/full"));
    let error = Walkthrough { vcd: Some("/dev/full".into()), ..walkthrough(1, 1) }.run().unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
}
