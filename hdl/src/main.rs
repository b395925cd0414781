//! Writes the Verilog.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hdl::accelerator::Build;
use hdl::generate;

/// The iSwitch accelerator for a NetFPGA-SUME, as RTL.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the Verilog of both builds
    Generate {
        /// Where to
        #[arg(long, default_value = "hdl/verilog")]
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let Command::Generate { directory } = Cli::parse().command;
    for build in Build::ALL {
        let path = directory.join(build.file_name());
        let written =
            fs::create_dir_all(&directory).and_then(|()| fs::write(&path, generate::accelerator(build)));
        if let Err(error) = written {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("{}", path.display());
    }
    ExitCode::SUCCESS
}
