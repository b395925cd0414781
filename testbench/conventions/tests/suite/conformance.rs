//! `protocol/CONFORMANCE.md` names the tests of each requirement of `protocol/SPEC.md`.

use std::collections::BTreeSet;
use std::fs;

use iswitch_conventions::{report, root};

use crate::citations::{self, cells};

const CONFORMANCE: &str = "protocol/CONFORMANCE.md";
/// Exclusive upper limit on the length of a restated requirement in `CONFORMANCE.md`, in characters.
const RESTATEMENT_CHARS: usize = 100;
/// Prefix of the reason why a requirement, or a part of it, has no test.
const NOT_TESTED: &str = "Not tested: ";

/// Section heading and number of a requirement.
type Requirement<'a> = (&'a str, &'a str);

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the requirements in a text. `id_of` returns the number of the requirement at the beginning of a line, if
/// there is one.
fn requirements<'a>(text: &'a str, id_of: impl Fn(&'a str) -> Option<&'a str>) -> Vec<Requirement<'a>> {
    let mut heading = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(section) = line.strip_prefix("## ") {
            heading = section;
        } else if let Some(id) = id_of(line) {
            found.push((heading, id));
        }
    }
    found
}

/// Returns the requirement number at the beginning of a list item in the specification, as in `- **W-1** A packet is
/// ours`.
fn stated(line: &str) -> Option<&str> {
    line.strip_prefix("- **")?.split_once("**").map(|(id, _)| id)
}

/// Returns the number of the requirement in a table row, as in `| W-1 | restatement | tests |`.
fn of_row(line: &str) -> Option<&str> {
    let id = line.strip_prefix("| ")?.split_once(" |").map(|(id, _)| id)?;
    let (letter, number) = id.split_once('-')?;
    let is_id = letter.len() == 1 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_id.then_some(id)
}

#[test]
fn each_requirement_has_one_row_in_its_section() {
    let (specification, conformance) = (read("protocol/SPEC.md"), read(CONFORMANCE));
    let (stated, rows) = (requirements(&specification, stated), requirements(&conformance, of_row));
    assert!(!stated.is_empty(), "SPEC.md must state requirements");
    let mut problems = Vec::new();
    for requirement in &stated {
        let count = rows.iter().filter(|row| *row == requirement).count();
        if count != 1 {
            let (heading, id) = requirement;
            problems.push(format!("{CONFORMANCE}: {count} rows for {id} in section {heading:?}, expected 1"));
        }
    }
    let known: BTreeSet<_> = stated.iter().collect();
    for (heading, id) in rows.iter().filter(|row| !known.contains(row)) {
        problems.push(format!("{CONFORMANCE}: {id} is not a requirement of section {heading:?} of SPEC.md"));
    }
    if problems.is_empty() && stated != rows {
        problems.push(format!("{CONFORMANCE}: the rows are not in the order of SPEC.md"));
    }
    report(&problems);
}

#[test]
fn each_row_cites_existing_tests_or_explains_their_absence() {
    let conformance = read(CONFORMANCE);
    let mut problems = Vec::new();
    // Some rows have no number, because they restate statements that have no number in SPEC.md.
    let is_row = |line: &str| of_row(line).is_some() || line.starts_with("| ") && line.contains('`');
    for (number, row) in conformance.lines().enumerate().filter(|(_, line)| is_row(line)) {
        let found = match cells(row)[..] {
            [_, restatement, tests] => row_problems(restatement, tests),
            ref cells => vec![format!("{} cells, expected 3", cells.len())],
        };
        problems.extend(found.iter().map(|problem| format!("{CONFORMANCE}:{}: {problem}", number + 1)));
    }
    report(&problems);
}

fn row_problems(restatement: &str, tests: &str) -> Vec<String> {
    let mut problems = citations::problems(tests);
    let chars = restatement.chars().count();
    if chars == 0 || chars >= RESTATEMENT_CHARS {
        let expected = format!("expected 1 to {}", RESTATEMENT_CHARS - 1);
        problems.push(format!("the restatement has {chars} characters, {expected}"));
    }
    let has_reason = tests.split_once(NOT_TESTED).is_some_and(|(_, reason)| !reason.trim().is_empty());
    if !citations::names_a_file(tests) && !has_reason {
        problems.push(format!("cites no test and gives no reason ({NOT_TESTED:?})"));
    }
    problems
}

#[test]
fn incomplete_rows_are_reported() {
    let named = "`testbench/conventions/tests/suite/conformance.rs`: `incomplete_rows_are_reported`";
    assert_eq!(row_problems("A packet is ours.", named), Vec::<String>::new());
    assert_eq!(
        row_problems("A packet is ours.", "Not tested: it needs a switch chip."),
        Vec::<String>::new()
    );
    for (restatement, tests) in [
        ("", named),
        (&"x".repeat(RESTATEMENT_CHARS)[..], named),
        ("A packet is ours.", "Not tested: "),
        ("A", "rule `Sum`"),
    ] {
        assert_eq!(row_problems(restatement, tests).len(), 1, "{restatement:?}, {tests:?}");
    }
}
