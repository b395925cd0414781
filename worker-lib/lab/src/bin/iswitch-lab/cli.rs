//! Command line of `iswitch-lab`.

use std::ffi::OsString;

use clap::{Parser, value_parser};
use iswitch_lab::links::{Delay, Links, Rate};
use iswitch_protocol::limits::MAX_MEMBERS;

/// Runs a command in each worker of a network inside this machine, with a switch between them.
///
/// The network is a bridge with a port for each worker; iswitchd sums what passes its ports. No root is needed: the
/// network is made in a user namespace, and disappears with this command. The command finds its place in RANK,
/// WORLD_SIZE, MASTER_ADDR, MASTER_PORT, LOCAL_RANK and LOCAL_WORLD_SIZE, as from torchrun, and the switch in
/// ISWITCH_SWITCH. Each line that it prints begins with its rank. If a command fails, the others are ended; the exit
/// status is that of the first that failed.
#[derive(Debug, Parser)]
#[command(name = "iswitch-lab", bin_name = "iswitch lab", version, about)]
pub(crate) struct Cli {
    /// Number of workers.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u16).range(1..=MAX_MEMBERS as i64))]
    pub(crate) workers: u16,
    /// Rate of each link in each direction, such as 1gbit or 100mbit [default: as fast as the machine].
    #[arg(long)]
    pub(crate) rate: Option<Rate>,
    /// Delay of each link in each direction, such as 100us or 5ms; needs a kernel with netem.
    #[arg(long)]
    pub(crate) delay: Option<Delay>,
    /// MTU of each link, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = value_parser!(u32).range(576..=9000))]
    pub(crate) mtu: u32,
    /// Let the switch receive on a UDP port instead of the ports of the bridge.
    #[arg(long)]
    pub(crate) udp: bool,
    /// Further argument of iswitchd, such as --ordered; may be repeated.
    #[arg(long = "iswitchd-arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) iswitchd_arguments: Vec<OsString>,
    /// Worker whose shell is opened if there is no command.
    #[arg(long, value_name = "RANK", default_value_t = 0, conflicts_with = "command")]
    pub(crate) shell: u16,
    /// Print the network as one line of JSON once the commands run: namespaces, addresses, process ids.
    #[arg(long)]
    pub(crate) json: bool,
    /// This process is the first of its namespaces.
    #[arg(long = "inside", hide = true)]
    pub(crate) is_inside: bool,
    /// Command to run in each worker, with its arguments [default: a shell in one worker].
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
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_command_is_its_own() {
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
