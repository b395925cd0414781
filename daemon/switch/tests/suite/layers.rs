//! Test that the modules of the crate form the layers that its documentation lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the modules in the list of layers, from top to bottom.
fn listed() -> Vec<String> {
    let text = fs::read_to_string(source().join("lib.rs")).unwrap();
    let list = text.split_once("//! # Layers").unwrap().1.split_once("//! # ").unwrap().0;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the source text of a module and its submodules, without unit tests.
fn text_of(module: &str) -> String {
    let file = source().join(format!("{module}.rs"));
    let mut files = vec![file.clone()];
    if !file.exists() {
        let entries = fs::read_dir(source().join(module)).unwrap();
        files = entries.map(|entry| entry.unwrap().path()).collect();
    }
    let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
    texts.map(|text| text.split("#[cfg(test)]").next().unwrap().to_owned()).collect()
}

/// Returns the modules of the crate that a text uses: `crate::NAME` and `use crate::{NAME, NAME}`.
fn used(text: &str) -> BTreeSet<&str> {
    let after_crate = text.split("crate::").skip(1);
    let names = after_crate.flat_map(|rest| match rest.strip_prefix('{') {
        Some(group) => group.split('}').next().unwrap_or_default().split(',').collect::<Vec<_>>(),
        None => vec![rest],
    });
    let is_part = |c: char| c == '_' || c.is_ascii_lowercase();
    let words = names.map(|text| text.trim().split(|c| !is_part(c)).next().unwrap_or_default());
    words.filter(|name| !name.is_empty()).collect()
}

#[test]
fn modules_use_only_modules_of_the_layers_below() {
    let listed = listed();
    let position = |module: &str| listed.iter().position(|other| other == module);
    let mut problems = Vec::new();
    for (at, module) in listed.iter().enumerate() {
        for other in used(&text_of(module)) {
            match position(other) {
                Some(below) if below >= at => {}
                Some(_) => problems.push(format!("{module} uses {other}, which is above it")),
                None => problems.push(format!("{module} uses {other}, which is not listed")),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_module_is_listed_once() {
    let text = fs::read_to_string(source().join("lib.rs")).unwrap();
    let declared = text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    let declared: BTreeSet<_> = declared.map(|name| name.trim_end_matches(';').to_owned()).collect();
    let listed = listed();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), declared);
    assert_eq!(listed.len(), declared.len());
}

#[test]
fn module_uses_are_found() {
    let text = "use crate::jobs::Jobs;\nuse crate::{lifecycle, parent};\nlet x = crate::Switch::new();\npub(crate) fn";
    assert_eq!(used(text), BTreeSet::from(["jobs", "lifecycle", "parent"]));
}
