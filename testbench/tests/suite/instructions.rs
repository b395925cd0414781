//! Checks that the number of instructions that the core executes per packet equals the number in the table in
//! `docs/results/core.md`, within the tolerance. Needs Valgrind and a CPU with AVX2.

use std::fs;
use std::path::Path;

use iswitch_harness::binaries;
use iswitch_harness::requirements::{programs, report};
use iswitch_simulation::core_load::LoadMode;
use iswitch_testbench::instructions::{Count, TABLE, compare, count, obstacle, parse, table};
use strum::IntoEnumIterator as _;

fn kept() -> Vec<Count> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TABLE);
    parse(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_core_executes_as_many_instructions_as_the_table_states() {
    const NAME: &str = "the_core_executes_as_many_instructions_as_the_table_states";
    if let Some(needed) = obstacle() {
        return report(&format!("SKIPPED {NAME}: needs {needed}"));
    }
    if !programs(NAME, &["valgrind"]) {
        return;
    }
    let counts = count(&binaries::core_load()).unwrap();
    report(&table(&counts));
    compare(&counts, &kept()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn an_instruction_count_far_from_the_table_is_reported() {
    let count = |instructions| vec![Count { mode: LoadMode::Ordered, floats: 366, instructions }];
    let document =
        format!("# Core\n\n## Instructions\n\n{}\n## More\n\n| partial | 1 | 7 |\n", table(&count(1000)));
    assert_eq!(parse(&document).unwrap(), count(1000));
    for near in [900, 1000, 1100] {
        compare(&count(near), &count(1000)).unwrap();
    }
    for far in [899, 1101] {
        let error = compare(&count(far), &count(1000)).unwrap_err().to_string();
        assert!(
            error.contains(&format!("ordered, 366 floats: {far} instructions, but the table has 1000")),
            "{error}"
        );
    }
    let error = compare(&count(5), &[]).unwrap_err().to_string();
    assert!(error.contains("not in the table"), "{error}");
    parse("## Instructions\n\nnone\n").unwrap_err();
}

#[test]
fn the_instruction_table_covers_every_mode() {
    let kept = kept();
    for mode in LoadMode::iter() {
        for floats in [366, 1] {
            assert!(
                kept.iter().any(|count| (count.mode, count.floats) == (mode, floats)),
                "{mode}, {floats}"
            );
        }
    }
}
