//! The C interface: the header is the one that cbindgen makes, and the example compiles, links and runs.

#![cfg(feature = "capi")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iswitch_daemon::embedded::{EmbeddedOptions, EmbeddedSwitch};

fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_up_to_date() {
    let config = cbindgen::Config::from_file(manifest_dir().join("cbindgen.toml")).unwrap();
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(manifest_dir().join("src/capi.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    let path = manifest_dir().join("include/iswitch.h");
    if std::env::var_os("ISWITCH_BLESS").is_some() {
        return std::fs::write(path, header).unwrap();
    }
    let present = std::fs::read_to_string(path).unwrap_or_default();
    assert!(present == header, "include/iswitch.h is out of date: ISWITCH_BLESS=1 cargo test writes it anew");
}

/// The shared library lies beside the test binary, or one directory up.
fn library_dir() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let candidates = [deps.clone(), deps.parent().unwrap().to_owned()];
    let found = candidates.into_iter().find(|dir| dir.join("libiswitch.so").exists());
    found.expect("cargo builds the cdylib together with the tests")
}

#[test]
fn the_c_example_runs() {
    if Command::new("cc").arg("--version").output().is_err() {
        let line = "SKIPPED the_c_example_runs: no C compiler (cc)";
        assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
        // Past the capture of the test harness, so that it shows.
        return writeln!(std::io::stderr(), "{line}").unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("all_reduce");
    let library = library_dir();
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
        .arg(manifest_dir().join("examples/c/all_reduce.c"))
        .arg("-I")
        .arg(manifest_dir().join("include"))
        .arg("-L")
        .arg(&library)
        .args(["-liswitch", "-o"])
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success(), "the example compiles without a warning");

    let any_port = "127.0.0.1:0".parse().unwrap();
    let switch = EmbeddedSwitch::start(any_port, &EmbeddedOptions::default()).unwrap();
    let workers: Vec<_> = (0..2)
        .map(|rank| {
            Command::new(&program)
                .args([switch.address().to_string(), "2".into(), rank.to_string()])
                .env("LD_LIBRARY_PATH", &library)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 10);
        assert!(text.lines().all(|line| line.ends_with("sum of 2 gradients")), "{text}");
    }
}
