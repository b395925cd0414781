//! Interface to a simulated accelerator, independent of the simulator.

/// A frame on the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes of the frame, starting with the destination MAC address.
    pub bytes: Vec<u8>,
    /// Source port, one-hot.
    pub source: u8,
    /// Destination ports, one bit each.
    pub destination: u8,
}

/// Pattern of the pauses of the source or the sink of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Pauses in this percentage of the cycles.
    Percent(u8),
    /// Pauses in every fourth cycle.
    Fourth,
}

impl Pause {
    /// Returns the pattern as one byte.
    pub fn code(self) -> u8 {
        match self {
            Self::Percent(percent) => percent,
            Self::Fourth => u8::MAX,
        }
    }
}

/// One step of a simulation. Steps are executed in sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sends a frame immediately after the previous one.
    Send(Frame),
    /// Sends a frame that ends after the given number of bytes, although `tuser` states its full length.
    Cut(Frame, u16),
    /// Sends the given number of beats of a frame, then resets the board. The reset clears all state, including the
    /// registers.
    Reset(Frame, u8),
    /// Sends nothing until no beat has entered or left the board for `DRAIN_CYCLES`.
    Drain,
    /// Writes a register. Drain first if the order relative to frames matters.
    Write(u16, u32),
    /// Sets the pauses of the source and of the sink from now on.
    Pauses(Pause, Pause),
}

/// Outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Output frames, in order.
    pub frames: Vec<Frame>,
    /// Clock cycles from the first input beat to the last output beat. `beats` is the number of input beats.
    pub cycles: u64,
    pub beats: u64,
}

/// Illegal behaviour of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// The board makes no progress although work is left.
    #[error("stalled: nothing entered or left the board for {STALL_CYCLES} cycles")]
    Stalled,
    /// The board keeps sending without input.
    #[error("endless: frames still leave the board {ENDLESS_CYCLES} cycles after the last input beat")]
    Endless,
    /// The valid bytes of a beat do not start at the first byte or are not contiguous.
    #[error("tkeep has a gap")]
    KeepGap,
    /// A frame continues after a partial beat.
    #[error("a beat other than the last of a frame is partial")]
    ShortBeat,
    /// The logic of the board contains a combinational loop.
    #[error("the logic does not settle")]
    Unsettled,
}

impl BoardError {
    /// Returns the error with the given code of the [`super::Verilated`] protocol.
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

    /// Reads a register.
    fn read(&mut self, offset: u16) -> Result<u32, Self::Error>;
}

/// Cycles without a transfer after which a device counts as drained. A sweep of all slots takes fewer cycles.
pub(super) const DRAIN_CYCLES: u32 = 600;
/// Cycles for which the board is held in reset.
pub(super) const RESET_CYCLES: u32 = 4;
/// Cycles after a reset until all memories are cleared.
pub(super) const WAKE_CYCLES: u32 = 300;
/// Cycles without a transfer after which a device with work left counts as stalled: more than thirty times the drain
/// time.
pub(super) const STALL_CYCLES: u32 = 20_000;
/// Limit on the cycles from the last input beat to the last output beat. Sending the results of 1,024 segments at the
/// pace of the ports takes about a quarter of it.
pub(super) const ENDLESS_CYCLES: u64 = 1_000_000;
