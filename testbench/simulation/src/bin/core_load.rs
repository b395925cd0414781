//! Program that puts load on the switch core alone. `testbench instructions` runs it under Valgrind.

use clap::Parser;
use iswitch_simulation::core_load::{
    INSTRUCTION_MEMBERS, INSTRUCTION_SEGMENTS, Load, LoadMode, SEGMENT_FLOATS, Shape,
};

/// Sum the rounds of four members in memory, without a network
#[derive(Debug, Parser)]
#[command(version, max_term_width = 79)]
struct Cli {
    /// Mode of the core: synchronous, ordered, asynchronous or partial
    #[arg(long, default_value = "synchronous")]
    mode: LoadMode,
    /// Number of floats in a packet
    #[arg(long, default_value_t = SEGMENT_FLOATS)]
    floats: usize,
    /// Number of rounds to sum
    #[arg(long, default_value_t = 1)]
    rounds: u32,
}

fn main() {
    let Cli { mode, floats, rounds } = Cli::parse();
    let mut load = Load::new(Shape { floats, ..Shape::new(mode, INSTRUCTION_MEMBERS, INSTRUCTION_SEGMENTS) });
    for _ in 0..rounds {
        load.prepare();
        load.run();
    }
    load.check(rounds as usize);
}
