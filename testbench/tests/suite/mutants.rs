//! Tests that each mutant applies to the current code and names a requirement that exists in the specification.
//! `testbench mutants` builds each mutant and tests whether the checker finds it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use iswitch_testbench::mutants::{Mutant, select};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn mutants() -> Vec<Mutant> {
    Mutant::load_all(&workspace()).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn every_mutant_applies_to_the_code_and_names_a_requirement() {
    let specification = fs::read_to_string(workspace().join("protocol/SPEC.md")).unwrap();
    for mutant in mutants() {
        let source = fs::read_to_string(workspace().join(&mutant.bug.file)).unwrap();
        let broken = mutant.apply(&source).unwrap_or_else(|error| panic!("{error:#}"));
        assert_ne!(broken, source);
        let requirement = format!("**{}**", mutant.bug.breaks);
        assert!(specification.contains(&requirement), "{}: {requirement} is not in SPEC.md", mutant.name);
    }
}

#[test]
fn mutants_are_selected_by_name() {
    let all = mutants();
    let names: BTreeSet<_> = all.iter().map(|mutant| mutant.name.clone()).collect();
    assert_eq!(names.len(), all.len());
    assert_eq!(select(all.clone(), &[]).unwrap(), all);
    let name = all[1].name.clone();
    assert_eq!(select(all.clone(), std::slice::from_ref(&name)).unwrap(), [all[1].clone()]);
    let error = select(all, &[name, "no_such_bug".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("\"no_such_bug\"") && error.contains("no_duplicate_check"), "{error}");
}
