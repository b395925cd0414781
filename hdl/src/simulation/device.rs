//! What is done to an accelerator in simulation, whoever simulates it.

/// A frame on the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// From the destination's MAC address on.
    pub bytes: Vec<u8>,
    /// One-hot port that it came from.
    pub source: u8,
    /// One-hot ports that it goes to.
    pub destination: u8,
}

/// When one side of the stream pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// In so many cycles of a hundred.
    Percent(u8),
    /// In every fourth cycle.
    Fourth,
}

impl Pause {
    /// As one byte.
    pub fn code(self) -> u8 {
        match self {
            Self::Percent(percent) => percent,
            Self::Fourth => u8::MAX,
        }
    }
}

/// One step of a simulation. They are done one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A frame goes in, right behind the one before.
    Send(Frame),
    /// So many beats of a frame go in, then the board is reset. What is inside is lost, the registers too.
    Reset(Frame, u8),
    /// Nothing goes in until nothing has come out for a while.
    Drain,
    /// A register is written. Drain first where the order matters.
    Write(u16, u32),
    /// From now on source and sink pause.
    Pauses(Pause, Pause),
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Frames that came out, in order.
    pub frames: Vec<Frame>,
    /// Clock cycles from the first beat taken to the last one given, and beats taken.
    pub cycles: u64,
    pub beats: u64,
}

/// Something that simulates the top module.
pub trait Device {
    /// Why it may fail.
    type Error;

    /// Does all of it and drains.
    fn run(&mut self, commands: &[Command]) -> Result<Report, Self::Error>;

    /// The value of a register.
    fn read(&mut self, offset: u16) -> Result<u32, Self::Error>;
}

/// Cycles without any transfer after which a device counts as drained: more than a sweep of all slots takes.
pub(super) const DRAIN_CYCLES: u32 = 600;
/// Cycles for which the board is held in reset.
pub(super) const RESET_CYCLES: u32 = 4;
/// Cycles after a reset until all memories are clear.
pub(super) const WAKE_CYCLES: u32 = 300;
