//! Interface to a simulated accelerator, independent of the simulator.

pub use iswitch_card::Frame;

/// Pattern of the cycles in which a stream's source does not assert `tvalid` for a new beat, or its sink does not
/// assert `tready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Pauses in each cycle with this probability, in percent.
    Percent(u8),
    /// Pauses in every fourth cycle.
    Fourth,
}

impl Pause {
    /// Returns the code of the pattern in the [`super::Verilated`] protocol.
    pub fn code(self) -> u8 {
        match self {
            Self::Percent(percent) => percent,
            Self::Fourth => u8::MAX,
        }
    }
}

/// A command to a simulated board. The simulator executes commands in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sends a frame immediately after the previous one.
    Send(Frame),
    /// Sends only the given number of bytes of a frame, although `tuser` specifies the length of the whole frame.
    Cut(Frame, u16),
    /// Sends at most the given number of beats of a frame, then resets the board. The reset clears all state, including
    /// the registers.
    Reset(Frame, u8),
    /// Sends nothing until no beat has entered or left the board for `DRAIN_CYCLES` consecutive cycles.
    Drain,
    /// Writes a value to the register at a byte offset. The write can take effect while earlier frames are still in the
    /// board; to prevent this, use [`Self::Drain`] first.
    Write(u16, u32),
    /// Sets the pause patterns of the source and of the sink for all following commands.
    Pauses(Pause, Pause),
}

/// Result of [`Device::run`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Output frames, in order.
    pub frames: Vec<Frame>,
    /// Number of clock cycles from the first input beat to the last beat at the input or output, both included. `beats`
    /// is the number of input beats.
    pub cycles: u64,
    pub beats: u64,
}

/// Illegal behaviour of a simulated board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// The board accepts and sends no beat for `STALL_CYCLES` although a command is still in progress.
    #[error("stalled: nothing entered or left the board for {STALL_CYCLES} cycles")]
    Stalled,
    /// The board still sends frames `ENDLESS_CYCLES` after its last input beat.
    #[error("endless: frames still leave the board {ENDLESS_CYCLES} cycles after the last input beat")]
    Endless,
    /// The valid bytes of a beat do not start at the first byte or are not contiguous.
    #[error("the valid bytes of a beat (tkeep) have a gap, expected contiguous bytes from the first one")]
    KeepGap,
    /// A frame continues after a partial beat.
    #[error("a frame continues after a partial beat, expected only its last beat to be partial")]
    ShortBeat,
    /// The logic of the board contains a combinational loop.
    #[error("the logic of the board does not settle: it contains a combinational loop")]
    Unsettled,
}

impl BoardError {
    /// Returns the error with the given code in the [`super::Verilated`] protocol, or `None` if the code is unknown.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        [Self::Stalled, Self::Endless, Self::KeepGap, Self::ShortBeat].get(usize::from(code)).copied()
    }
}

/// A simulator of the top module.
pub trait Device {
    /// Error type of the simulator.
    type Error;

    /// Executes all commands, then drains the board.
    fn run(&mut self, commands: &[Command]) -> Result<Report, Self::Error>;

    /// Reads the register at a byte offset.
    fn read(&mut self, offset: u16) -> Result<u32, Self::Error>;
}

/// Number of consecutive cycles without a transfer after which a board counts as drained. A sweep of all slots takes
/// fewer cycles.
pub(super) const DRAIN_CYCLES: u32 = 600;
/// Number of cycles for which a simulator holds the board in reset.
pub(super) const RESET_CYCLES: u32 = 4;
/// Number of cycles that a simulator waits after a reset. The board needs fewer cycles to clear all memories.
pub(super) const WAKE_CYCLES: u32 = 300;
/// Number of consecutive cycles without a transfer after which a board counts as stalled if a command is still in
/// progress. The value is more than 30 times [`DRAIN_CYCLES`].
pub(super) const STALL_CYCLES: u32 = 20_000;
/// Maximum number of cycles from the last input beat to the last output beat. Sending the results of 1,024 segments at
/// port line rate takes about a quarter of this limit.
pub(super) const ENDLESS_CYCLES: u64 = 1_000_000;
