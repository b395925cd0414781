//! Generation of Verilog from the modules of this crate.

use rust_hdl::core::check_error::check_all;
use rust_hdl::core::module_defines::ModuleDefines;
use rust_hdl::prelude::*;

use crate::accelerator::{Build, IswitchAccel};

const NOTICE: &str = "// Written by `cargo run --release -p hdl -- generate` from hdl/src; do not edit.\n";

/// Returns the Verilog of the given build of the accelerator.
pub fn accelerator(build: Build) -> String {
    module("iswitch_accel", &IswitchAccel::new(build))
}

/// Returns the Verilog of a block, as a module with the given name. The signals of the block must already be connected.
///
/// # Panics
/// Panics if a signal of the block has no driver or more than one driver.
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
