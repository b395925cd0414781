//! Memories and queues that the modules of the accelerator use.

mod block_ram;
mod fifo;
mod lut_ram;

pub use block_ram::BlockRam;
pub use fifo::Fifo;
pub use lut_ram::LutRam;
