//! Notation in which documentation tables cite the tests that back a statement: the path of a file, followed by the
//! names of tests in that file, each in backticks. Rules of the simulation's checker (rule `Sum`) and mutants (mutant
//! `no_duplicate_check`) may also be cited.

use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

use iswitch_conventions::{root, sources};

/// Kind of a citation in backticks.
#[derive(Clone, Copy)]
enum Cited {
    Test,
    Rule,
    Mutant,
}

/// Returns the cells of a row of a Markdown table.
pub(crate) fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_start_matches('|').trim_end_matches('|').split('|').map(str::trim).collect()
}

/// Returns whether a text names a file.
pub(crate) fn names_a_file(text: &str) -> bool {
    quoted(text).any(|(_, word)| word.contains('/'))
}

/// Returns a problem for each cited file, test, rule or mutant that does not exist.
pub(crate) fn problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let (mut source, mut cited) = (None, Cited::Test);
    for (before, word) in quoted(text) {
        cited = match before.rsplit(' ').find(|word| !word.is_empty()) {
            Some("rule" | "rules") => Cited::Rule,
            Some("mutant" | "mutants") => Cited::Mutant,
            // After a comma or `and`, a citation has the same kind as the one before it.
            None | Some("," | "and") => cited,
            Some(_) => Cited::Test,
        };
        if word.contains('/') {
            cited = Cited::Test;
            source = fs::read_to_string(root().join(word)).ok();
            if source.is_none() {
                problems.push(format!("{word} does not exist"));
            }
            continue;
        }
        let problem = match cited {
            Cited::Test if source.as_deref().is_some_and(|text| has_test(text, word)) => continue,
            Cited::Rule if RULES.contains(word) => continue,
            Cited::Mutant if root().join(format!("testbench/mutants/{word}.toml")).is_file() => continue,
            Cited::Test => format!("there is no test {word} in the file named before it"),
            Cited::Rule => format!("the checker of the simulation has no rule {word}"),
            Cited::Mutant => format!("there is no mutant {word} in testbench/mutants"),
        };
        problems.push(problem);
    }
    problems
}

/// Returns the words in backticks, each with the text between it and the previous one.
fn quoted(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut pieces = text.split('`');
    std::iter::from_fn(move || Some((pieces.next()?, pieces.next()?)))
}

/// Names of the rules of the simulation's checker.
static RULES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let all = sources(".rs");
    let mut of_simulation = all.iter().filter(|(path, _)| path.starts_with("testbench/simulation/src/"));
    let (_, rest) = of_simulation
        .find_map(|(_, text)| text.split_once("pub enum Rule {"))
        .expect("the simulation must have an enum Rule");
    let lines = rest.lines().take_while(|line| *line != "}").map(str::trim);
    lines.filter_map(|line| line.strip_suffix(',')).map(str::to_owned).collect()
});

/// Returns whether a source text defines a test with this name.
pub(crate) fn has_test(text: &str, name: &str) -> bool {
    // pytest recognises a test by its name.
    if name.starts_with("test_") && text.lines().any(|line| line.starts_with(&format!("def {name}("))) {
        return true;
    }
    let signature = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let bare = |line: &str| line.strip_prefix("async ").unwrap_or(line).starts_with(&signature);
    let found = lines.iter().position(|line| bare(line));
    let is_mark = |line: &str| line == "#[test]" || line.starts_with("#[tokio::test");
    found.is_some_and(|at| at > 0 && is_mark(lines[at - 1]))
}

#[test]
fn citations_of_missing_items_are_reported() {
    let this = "testbench/conventions/tests/suite/citations.rs";
    let good = format!(
        "`{this}`: `citations_of_missing_items_are_reported`; rules `Sum`, `Agreement`, mutant `weight_ignored`"
    );
    assert_eq!(problems(&good), Vec::<String>::new());
    assert!(names_a_file(&good) && !names_a_file("rule `Sum`"));
    for bad in [
        "`testbench/none.rs`",
        "`citations_of_missing_items_are_reported`",
        &format!("`{this}`: `has_test`"),
        "rules `Sum`, `weight_ignored`",
        "mutant `Sum`",
    ] {
        assert_eq!(problems(bad).len(), 1, "{bad}");
    }
}
