//! Memories and queues that the modules share.

mod block_ram;
mod fifo;
mod lut_ram;

pub use block_ram::BlockRam;
pub use fifo::Fifo;
pub use lut_ram::LutRam;
