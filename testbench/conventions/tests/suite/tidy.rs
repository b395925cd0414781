//! House rules that a compiler does not check.

use std::fs;

use iswitch_conventions::{report, root, sources};

use crate::citations::{self, cells, has_test};

/// Maximum number of columns in a line of Rust. rustfmt limits code to 110; prose may be a word longer.
const LINE_COLUMNS: usize = 120;
/// Maximum number of columns in a line of Python.
const PYTHON_COLUMNS: usize = 140;
const FUNCTION_LINES: usize = 70;
/// Maximum number of lines of a function in a hardware module. It is higher than elsewhere, because rust-hdl translates
/// a single function of each module, so the logic of a module cannot be divided into several functions.
const HARDWARE_LINES: usize = 90;

/// Paths that may contain `unsafe` code, each with its purpose.
const UNSAFE_PLACES: [&str; 10] = [
    "protocol/element/src/lib.rs",             // loops compiled for AVX2
    "daemon/socket/src/",                      // sendmsg, recvmsg, ppoll
    "daemon/iswitchd/src/port/packet_ring.rs", // AF_PACKET
    "daemon/iswitchd/src/port/interface.rs",   // ioctl
    "daemon/iswitchd/src/port/xdp/",           // AF_XDP, bpf
    "daemon/sandbox/src/violation.rs",         // handler of SIGSYS
    "worker-lib/c-interface/src/lib.rs",       // pointers from C
    "worker-lib/learn/src/nn/matmul.rs",       // interface of the gemm-f32 crate
    "worker-lib/learn/src/env/mujoco/",        // libmujoco, opened at run time
    "worker-lib/python/src/array.rs",          // buffer protocol, DLPack
];

#[test]
fn lines_do_not_exceed_the_column_limit() {
    let mut problems = Vec::new();
    let of = |ending, columns| sources(ending).into_iter().map(move |source| (source, columns));
    let python = of(".py", PYTHON_COLUMNS).chain(of(".pyi", PYTHON_COLUMNS));
    for ((path, text), columns) in of(".rs", LINE_COLUMNS).chain(python) {
        for (number, line) in text.lines().enumerate() {
            // A URL and a row of a table cannot be broken.
            let is_whole = line.contains("https://") || line.starts_with("//! |");
            if line.chars().count() > columns && !is_whole {
                problems.push(format!("{path}:{}: {} columns", number + 1, line.chars().count()));
            }
        }
    }
    report(&problems);
}

#[test]
fn functions_fit_on_one_screen() {
    let mut problems = Vec::new();
    for (path, text) in sources(".rs") {
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let is_function = ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "unsafe fn "]
                .iter()
                .any(|prefix| code.starts_with(prefix));
            // A declaration in a trait ends with a semicolon; a function with an empty body ends on its first line.
            let head = lines[start..].iter().find(|line| line.ends_with(['{', ';', '}']));
            if !is_function || head.is_some_and(|line| !line.ends_with('{')) {
                continue;
            }
            let indent = line.len() - code.len();
            let closing = format!("{}}}", " ".repeat(indent));
            let end = lines[start..].iter().position(|line| *line == closing).unwrap_or(0);
            let is_hardware =
                lines[start.saturating_sub(2)..start].iter().any(|it| it.trim() == "#[hdl_gen]");
            if end >= if is_hardware { HARDWARE_LINES } else { FUNCTION_LINES } {
                problems.push(format!("{path}:{}: {} lines", start + 1, end + 1));
            }
        }
    }
    report(&problems);
}

#[test]
fn only_listed_files_allow_unsafe_code() {
    let mut problems = Vec::new();
    for (path, text) in sources(".rs") {
        let is_unsafe = text.contains(concat!("allow(", "unsafe_code)"));
        if is_unsafe && !UNSAFE_PLACES.iter().any(|place| path.starts_with(place)) {
            problems.push(format!("{path} allows unsafe code"));
        }
    }
    report(&problems);
}

#[test]
fn cited_requirements_exist() {
    let specification = fs::read_to_string(root().join("protocol/SPEC.md")).expect("SPEC.md must exist");
    let mut problems = Vec::new();
    for (path, text) in sources(".rs") {
        for (number, line) in text.lines().enumerate() {
            for cited in requirements(line) {
                if !specification.contains(&format!("**{cited}**")) {
                    problems.push(format!("{path}:{}: {cited} is not in SPEC.md", number + 1));
                }
            }
        }
    }
    report(&problems);
}

/// Returns the requirements cited in a comment, such as `(W-1)` or `requirement C-4`.
fn requirements(line: &str) -> Vec<&str> {
    let Some((_, comment)) = line.split_once("//") else { return Vec::new() };
    comment
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| {
            let bytes = word.as_bytes();
            bytes.len() >= 3
                && matches!(bytes[0], b'W' | b'D' | b'C' | b'M' | b'R' | b'F' | b'H' | b'A' | b'V' | b'G')
                && bytes[1] == b'-'
                && bytes[2..].iter().all(u8::is_ascii_digit)
        })
        .collect()
}

#[test]
fn no_marker_of_unfinished_work_is_left() {
    let markers = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("todo", "!(")];
    let mut problems = Vec::new();
    for (path, text) in sources(".rs") {
        for (number, line) in text.lines().enumerate() {
            if markers.iter().any(|marker| line.contains(marker)) {
                problems.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    report(&problems);
}

#[test]
fn promises_are_tested() {
    let promises = fs::read_to_string(root().join("testbench/PROMISES.md")).expect("PROMISES.md must exist");
    let mut problems = Vec::new();
    let rows = promises.lines().enumerate().filter(|(_, line)| line.starts_with("| ") && line.contains('`'));
    for (number, row) in rows {
        let place = format!("testbench/PROMISES.md:{}", number + 1);
        let last = cells(row).pop().unwrap_or_default();
        problems.extend(citations::problems(last).into_iter().map(|problem| format!("{place}: {problem}")));
        if !citations::names_a_file(last) {
            problems.push(format!("{place}: cites no file"));
        }
    }
    report(&problems);
}

#[test]
fn tests_that_need_root_are_listed() {
    let list = fs::read_to_string(root().join("testbench/ROOT.md")).expect("ROOT.md must exist");
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| ")).collect();
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for (path, text) in sources(".rs") {
        let asks = [concat!("root_", "and("), concat!("root_xdp", "_and("), concat!("nobody_", "and(")];
        let asks = asks.iter().any(|call| text.contains(call));
        if asks && path != "testbench/harness/src/requirements.rs" {
            let is_listed =
                rows.iter().any(|row| row.split('|').nth(1).is_some_and(|test| test.contains(&path)));
            problems.extend((!is_listed).then(|| format!("testbench/ROOT.md does not list {path}")));
            files.push(path);
        }
    }
    for row in rows {
        // Every second piece is in backticks: the names of tests, then their file.
        let quoted: Vec<&str> =
            row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2).collect();
        let Some((path, names)) = quoted.split_last() else { continue };
        let text = fs::read_to_string(root().join(path)).unwrap_or_default();
        let missing =
            names.iter().filter(|name| !has_test(&text, name) && !text.contains(&format!("\"{name}\"")));
        problems.extend(missing.map(|name| format!("testbench/ROOT.md: {name} is not in {path}")));
    }
    assert!(!files.is_empty());
    report(&problems);
}
