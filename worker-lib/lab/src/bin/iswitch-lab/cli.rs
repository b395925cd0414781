//! Command line of `iswitch-lab`.

use std::ffi::OsString;

use clap::{Parser, value_parser};
use iswitch_lab::links::{Delay, Links, Rate};
use iswitch_protocol::limits::MAX_MEMBERS;

/// Run a command in each worker of an emulated network with a switch, without root
///
/// The network is a bridge with a port for each worker; iswitchd sums the gradients that pass through these ports. The
/// network is created in a user namespace, so root is not required, and it disappears when this command ends. The
/// command of each worker receives its rank in the variables that torchrun sets (RANK, WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT, LOCAL_RANK and LOCAL_WORLD_SIZE), and the address of the switch in ISWITCH_SWITCH. Each line that a
/// command prints is prefixed with the worker's rank. If one command fails, the others are terminated. The exit status
/// is that of the first command that failed.
#[derive(Debug, Parser)]
#[command(name = "iswitch-lab", bin_name = "iswitch lab", version, max_term_width = 79, about)]
pub(crate) struct Cli {
    /// Number of workers in the emulated network
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u16).range(1..=MAX_MEMBERS as i64))]
    pub(crate) workers: u16,
    /// Rate of each link in each direction, such as 1gbit [default: unlimited]
    #[arg(long)]
    pub(crate) rate: Option<Rate>,
    /// Delay of each link in each direction, such as 100us or 5ms
    ///
    /// This option requires a kernel with netem.
    #[arg(long)]
    pub(crate) delay: Option<Delay>,
    /// MTU of each link, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = value_parser!(u32).range(576..=9000))]
    pub(crate) mtu: u32,
    /// Make the switch receive on a UDP port instead of on the bridge ports
    #[arg(long)]
    pub(crate) udp: bool,
    /// Additional argument for iswitchd, such as --ordered
    ///
    /// This option is repeatable.
    #[arg(long = "iswitchd-arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) iswitchd_arguments: Vec<OsString>,
    /// Rank of the worker in which a shell is opened if no command is given
    #[arg(long, value_name = "RANK", default_value_t = 0, conflicts_with = "command")]
    pub(crate) shell: u16,
    /// Print a description of the network as one line of JSON
    ///
    /// The line contains namespaces, addresses and process ids. It is printed once all commands have started.
    #[arg(long)]
    pub(crate) json: bool,
    /// Run as the first process inside the new namespaces
    #[arg(long = "inside", hide = true)]
    pub(crate) is_inside: bool,
    /// Command and arguments to run in each worker [default: a shell in one worker]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Cli {
    pub(crate) fn links(&self) -> Links {
        Links { rate: self.rate, delay: self.delay }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_after_the_command_belong_to_the_command() {
        for line in
            ["iswitch-lab --workers 2 -- program --rate x", "iswitch-lab --workers 2 program --rate x"]
        {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!((cli.workers, cli.rate), (2, None));
            assert_eq!(cli.command, ["program", "--rate", "x"]);
        }
        assert!(Cli::try_parse_from(["iswitch-lab", "--unknown", "program"]).is_err());
        assert!(Cli::try_parse_from(["iswitch-lab", "--workers", "65"]).is_err());
    }
}
