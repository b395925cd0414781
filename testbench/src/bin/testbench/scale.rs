//! The `testbench scale` subcommand.

use std::process::ExitCode;

use clap::Args;
use iswitch_testbench::peers::racks::racks_of;
use iswitch_testbench::peers::{Axis, Links, Network, Table};

use crate::peers::{Common, PAPER_FLOATS, Prepared};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Lengths of the vectors, in floats
    ///
    /// The default lengths are those of the four models in the iSwitch paper.
    #[arg(long, value_delimiter = ',', default_values_t = PAPER_FLOATS)]
    floats: Vec<u32>,
    /// Numbers of workers, in racks of three
    ///
    /// Four workers form two racks of two. Otherwise, if the number is not a multiple of three, the last rack is
    /// smaller.
    #[arg(
        long, value_delimiter = ',', default_values_t = [4, 6, 9, 12],
        value_parser = clap::value_parser!(u16).range(2..=64)
    )]
    workers: Vec<u16>,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    options.common.over_links("scale", |prepared, links| measure_all(options, prepared, links))
}

fn measure_all(options: &Options, prepared: &Prepared, links: Links) {
    let common = &options.common;
    let mut by_floats: Vec<Vec<Table>> = vec![Vec::new(); options.floats.len()];
    for workers in &options.workers {
        let network = Network::racks(&racks_of(usize::from(*workers)), links);
        for (tables, floats) in by_floats.iter_mut().zip(&options.floats) {
            tables.push(common.measure(&network, prepared, *floats));
        }
    }
    by_floats.into_iter().for_each(|tables| common.show_series("scale", Axis::Workers, tables));
}
