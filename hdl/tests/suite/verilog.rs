//! Tests that the checked-in Verilog is up to date and free of unsafe constructs, and that the C header and
//! hdl/README.md contain the current register map.

use std::fs;
use std::path::Path;

use clap::ValueEnum as _;
use hdl::accelerator::{Build, register_map};
use hdl::generate;

#[test]
fn the_verilog_in_the_tree_is_up_to_date() {
    let build = Build::Slots128;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("verilog").join(build.file_name());
    let written = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // assert_eq would print both texts, which are very long.
    assert!(
        written == generate::accelerator(build),
        "{} is stale; run `cargo run --release -p hdl -- generate`",
        path.display()
    );
}

/// The repository contains the Verilog of the build with 128 slots only. This test checks that the Verilog of the build
/// with 256 slots differs from it only in the size of the buffer.
#[test]
fn builds_differ_only_in_the_buffer_size() {
    let [small, large] = [Build::Slots128, Build::Slots256].map(generate::accelerator);
    assert_eq!(small.lines().count(), large.lines().count());
    let differing: Vec<_> =
        small.lines().zip(large.lines()).filter(|(small, large)| small != large).collect();
    let is_of_the_buffer = |(small, _): &(&str, &str)| small.contains("is_large") || small.contains("words[");
    assert!(differing.len() == 3 && differing.iter().all(is_of_the_buffer), "{differing:?}");
}

/// Rejects constructs whose Verilog behaves differently from rust-hdl's simulation, as far as the text of the Verilog
/// reveals them.
#[test]
fn the_verilog_contains_no_dangerous_construct() {
    for &build in Build::value_variants() {
        let text = generate::accelerator(build);
        for (number, line) in text.lines().enumerate() {
            assert!(
                !line.contains("] [(") && !line.contains("][("),
                "{}: a slice of a slice: {line}",
                number + 1
            );
            for cast in casts(line) {
                let is_plain = !cast.contains(['+', '-', '~', '*']) || cast.contains("+:");
                assert!(is_plain, "{}: arithmetic inside a cast: {line}", number + 1);
            }
            let compares = ["==", "!=", " < ", " > ", ">="].iter().any(|operator| line.contains(operator));
            let calculates = [" + ", " - "].iter().any(|operator| line.contains(operator));
            let is_loop = line.contains("for (i = 0");
            assert!(
                is_loop || !(compares && calculates),
                "{}: arithmetic beside a comparison: {line}",
                number + 1
            );
        }
    }
}

/// Returns the operand of each cast in a line. A cast is a bit mask in brackets, `(operand & mask)`.
fn casts(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(" & ").filter_map(|(at, _)| {
        let is_mask = line[at + 3..].split_once("'h").is_some_and(|(width, _)| width.parse::<u32>().is_ok());
        if !is_mask {
            return None;
        }
        let mut depth = 0;
        let start = line[..at].char_indices().rev().find(|(_, c)| {
            depth += match c {
                ')' => 1,
                '(' => -1,
                _ => 0,
            };
            depth < 0
        })?;
        Some(&line[start.0 + 1..at])
    })
}

#[test]
fn the_header_and_the_readme_contain_the_register_map() {
    let header = include_str!("../../verilog/iswitch_accel.h");
    assert_eq!(header, register_map::c_header(), "run `cargo run --release -p hdl -- generate`");
    let readme = include_str!("../../README.md");
    assert!(
        readme.contains(&register_map::markdown()),
        "hdl/README.md does not contain the output of `cargo run --release -p hdl -- registers`"
    );
}
