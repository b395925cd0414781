//! Generation of the Verilog of the crate's modules.

use rust_hdl::core::check_error::check_all;
use rust_hdl::core::module_defines::ModuleDefines;
use rust_hdl::prelude::*;

use crate::accelerator::{Build, IswitchAccel};

const NOTICE: &str = "// Written by `cargo run --release -p hdl -- generate` from hdl/src; do not edit.\n";

/// Returns the Verilog of the accelerator for a build.
pub fn accelerator(build: Build) -> String {
    module("iswitch_accel", &IswitchAccel::new(build))
}

/// Returns the Verilog of a module with connected signals, under the given name.
///
/// # Panics
/// Panics if one of its signals has no driver or more than one.
pub fn module(name: &str, block: &dyn Block) -> String {
    if let Err(error) = check_all(block) {
        panic!("{name}: {error:?}");
    }
    let mut defines = ModuleDefines::default();
    block.accept(name, &mut defines);
    let text = defines.defines();
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    format!("{NOTICE}{}\n", lines.join("\n"))
}
