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

/// What no board may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    /// It stands still with work left.
    #[error("stalled: nothing went in or out for {STALL_CYCLES} cycles")]
    Stalled,
    /// It goes on without being given anything.
    #[error("endless: frames come out {ENDLESS_CYCLES} cycles after the last beat that went in")]
    Endless,
    /// Bytes of a beat are not those from the first on.
    #[error("tkeep has a gap")]
    KeepGap,
    /// A frame goes on after a beat that is not full.
    #[error("a beat before the last is short")]
    ShortBeat,
    /// Its logic has a loop.
    #[error("the logic does not settle")]
    Unsettled,
}

impl BoardError {
    /// The error with that code in the protocol of [`super::Verilated`].
    pub(super) fn from_code(code: u8) -> Option<Self> {
        [Self::Stalled, Self::Endless, Self::KeepGap, Self::ShortBeat].get(usize::from(code)).copied()
    }
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
/// Cycles without any transfer after which a device with work left has stalled: thirty times as long as a drain.
pub(super) const STALL_CYCLES: u32 = 20_000;
/// Cycles after the last beat that was taken until everything is out. To finish 1,024 segments takes a fifth of it.
pub(super) const ENDLESS_CYCLES: u64 = 1_000_000;
