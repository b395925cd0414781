//! The accelerator of figure 7 of the iSwitch paper, and the modules that insert it into a packet stream as a bump in
//! the wire.

pub mod accumulator;
pub mod adder_array;
pub mod address_generator;
pub mod axi_lite;
pub mod budget;
pub mod classifier;
pub mod control_decoder;
pub mod counters;
pub mod datapath;
pub mod force_walker;
pub mod header_capture;
pub mod help_reader;
pub mod ingress;
pub mod member_table;
pub mod merge;
pub mod output_module;
pub mod records;
pub mod register_map;
pub mod registers;
pub mod repeater;
pub mod request_gate;
pub mod requests;
pub mod result_header;
pub mod round_table;
pub mod scoreboard;
pub mod seg_counter;
pub mod seg_decoder;
pub mod seg_lookup;
pub mod separator;
pub mod slicer;
pub mod slot_table;
pub mod table_reader;
mod top;
pub mod verdict;
pub mod zero_mux;

pub use top::{Build, IswitchAccel};
