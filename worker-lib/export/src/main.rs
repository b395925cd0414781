//! `iswitch export`: writes the policy of a trained agent in formats that other programs read.

mod card;
mod description;
mod modules;
mod onnx;
mod options;
mod output;
mod policy;
mod tensors;
mod test_data;

use std::process::ExitCode;

use clap::Parser;
use iswitch_cli::program;

use options::Export;

const EXAMPLES: &str = "\
Examples:
  iswitch export runs/first --out policy.onnx
  iswitch export runs/first --out policy.safetensors
  iswitch export runs/first --format hub --out ppo-hopper --episodes 20";

/// Export a trained policy to ONNX, safetensors, JSON or the Hugging Face Hub
///
/// The exported policy takes observations as the environment returns them, and returns actions as the environment takes
/// them: it includes the normalisation of the observations and the scaling of the actions. It is the same policy that
/// `iswitch eval` runs, which takes the most probable action.
#[derive(Parser)]
#[command(
    name = "iswitch-export",
    bin_name = "iswitch export",
    version,
    max_term_width = 79,
    about,
    after_help = EXAMPLES
)]
struct Cli {
    #[command(flatten)]
    export: Export,
}

fn main() -> ExitCode {
    program::main(|cli: Cli| cli.export.run().map(|()| ExitCode::SUCCESS))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }
}
