//! Simulation of the top module by rust-hdl.

use std::collections::VecDeque;
use std::io::{self, Write};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rust_hdl::prelude::*;

use super::device::{
    BoardError, Command, DRAIN_CYCLES, Device, ENDLESS_CYCLES, Frame, Pause, RESET_CYCLES, Report,
    STALL_CYCLES, WAKE_CYCLES,
};
use super::trace::Trace;
use crate::accelerator::{Build, IswitchAccel};
use crate::axis::{BEAT_LEN_BYTES, Halves, Tuser};

/// Maximum number of iterations in which the logic must settle. The limit exceeds the number of modules on the longest
/// path between two registers, so only a combinational loop can reach it.
const MOST_ITERATIONS: usize = 200;

/// A board simulated by rust-hdl.
pub struct RustDevice {
    /// The top module, boxed because it is too large for the stack of a test.
    top: Box<IswitchAccel>,
    rng: ChaCha8Rng,
    source: Pause,
    sink: Pause,
    cycle: u64,
    /// Beats of the current frame that the board has not yet accepted.
    beats: VecDeque<Beat>,
    /// Whether `tvalid` is asserted at the input. It stays asserted until the board accepts the beat.
    offered: bool,
    arriving: Vec<u8>,
    arriving_ports: (u8, u8),
    idle: u32,
    /// Cycle in which the board accepted the last input beat or in which the current operation began, whichever is
    /// later.
    fed: u64,
    started: Option<u64>,
    ended: u64,
    report: Report,
    entering: Option<u64>,
    leaving: Option<u64>,
    frame_spans: FrameSpans,
    trace: Option<Trace>,
}

/// First and last cycle of a frame at the input or at the output of the board. Cycle 0 is the cycle of the first input
/// beat of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FrameSpan {
    /// Cycle in which the first beat is transferred.
    pub first_cycle: u64,
    /// Cycle in which the last beat is transferred.
    pub last_cycle: u64,
}

/// Clock cycles in which the frames of a run entered and left the board.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FrameSpans {
    /// Frames at the input, in the order in which they entered.
    pub entered: Vec<FrameSpan>,
    /// Frames at the output, in the order in which they left.
    pub left: Vec<FrameSpan>,
}

#[derive(Clone, Copy)]
struct Beat {
    data: [u8; BEAT_LEN_BYTES],
    keep: u32,
    last: bool,
    user: Tuser,
}

impl RustDevice {
    /// Creates a board and resets it.
    ///
    /// # Panics
    /// Panics if the logic of the board contains a combinational loop.
    pub fn new(build: Build) -> Self {
        let mut device = Self {
            top: Box::new(IswitchAccel::new(build)),
            rng: ChaCha8Rng::seed_from_u64(1),
            source: Pause::Percent(0),
            sink: Pause::Percent(0),
            cycle: 0,
            beats: VecDeque::new(),
            offered: false,
            arriving: Vec::new(),
            arriving_ports: (0, 0),
            idle: 0,
            fed: 0,
            started: None,
            ended: 0,
            report: Report::default(),
            entering: None,
            leaving: None,
            frame_spans: FrameSpans::default(),
            trace: None,
        };
        device.reset().expect("a board in reset settles");
        device
    }

    /// Returns the top module for inspection.
    pub fn top(&self) -> &IswitchAccel {
        &self.top
    }

    /// Returns the clock cycles in which the frames of the last run entered and left the board.
    pub fn frame_spans(&self) -> &FrameSpans {
        &self.frame_spans
    }

    /// Starts recording all signal changes as a Value Change Dump. The timestamps are in picoseconds, for a clock of
    /// 200 MHz.
    pub fn trace(&mut self, to: impl Write + 'static) -> io::Result<()> {
        self.trace = Some(Trace::begin(Box::new(to), self.top.as_ref())?);
        Ok(())
    }

    /// Ends the recording that [`Self::trace`] started.
    ///
    /// # Errors
    /// Fails if the recording could not be written completely.
    pub fn end_trace(&mut self) -> io::Result<()> {
        self.trace.take().map_or(Ok(()), Trace::end)
    }

    fn settle(&mut self) -> Result<(), BoardError> {
        if !simulate(self.top.as_mut(), MOST_ITERATIONS) {
            return Err(BoardError::Unsettled);
        }
        if let Some(trace) = &mut self.trace {
            trace.half_cycle(self.top.as_ref());
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), BoardError> {
        self.beats.clear();
        self.offered = false;
        self.arriving.clear();
        (self.entering, self.leaving) = (None, None);
        self.top.axis_resetn.next = false;
        (0..RESET_CYCLES).try_for_each(|_| self.step(false))?;
        self.top.axis_resetn.next = true;
        (0..WAKE_CYCLES).try_for_each(|_| self.step(false))
    }

    fn pauses(&mut self, pause: Pause) -> bool {
        match pause {
            Pause::Percent(0) => false,
            Pause::Percent(percent) => self.rng.random_range(0..100) < percent,
            Pause::Fourth => self.cycle % 4 == 3,
        }
    }

    /// Simulates one clock cycle. If `open` is false, `tvalid` at the input and `tready` at the output stay low, so no
    /// beat is transferred.
    fn step(&mut self, open: bool) -> Result<(), BoardError> {
        self.cycle += 1;
        let (source_pauses, sink_pauses) = (self.pauses(self.source), self.pauses(self.sink));
        let beat = self.beats.front().copied().filter(|_| open && (self.offered || !source_pauses));
        self.offered = beat.is_some();
        self.top.s_axis_tvalid.next = beat.is_some();
        if let Some(beat) = beat {
            self.top.s_axis_tdata.next = Halves::from_bytes(&beat.data);
            self.top.s_axis_tkeep.next = u64::from(beat.keep).into();
            self.top.s_axis_tlast.next = beat.last;
            self.top.s_axis_tuser.next = beat.user;
        }
        self.top.m_axis_tready.next = open && !sink_pauses;
        self.top.axis_aclk.next = Clock { clk: false };
        self.settle()?;
        self.idle += 1;
        if let Some(beat) = beat
            && self.top.s_axis_tready.val()
        {
            self.take_input(beat.last);
        }
        if open && !sink_pauses && self.top.m_axis_tvalid.val() {
            self.take_output()?;
        }
        self.top.axis_aclk.next = Clock { clk: true };
        self.settle()
    }

    fn take_input(&mut self, last: bool) {
        self.beats.pop_front();
        self.offered = false;
        self.idle = 0;
        self.fed = self.cycle;
        self.report.beats += 1;
        let started = *self.started.get_or_insert(self.cycle);
        self.ended = self.cycle;
        let now = self.cycle - started;
        let first_cycle = *self.entering.get_or_insert(now);
        if last {
            self.entering = None;
            self.frame_spans.entered.push(FrameSpan { first_cycle, last_cycle: now });
        }
    }

    fn take_output(&mut self) -> Result<(), BoardError> {
        self.idle = 0;
        self.ended = self.cycle;
        let now = self.cycle - self.started.unwrap_or(self.cycle);
        let first_cycle = *self.leaving.get_or_insert(now);
        let keep = self.top.m_axis_tkeep.val().to_u32();
        if keep & keep.wrapping_add(1) != 0 {
            return Err(BoardError::KeepGap);
        }
        let user = self.top.m_axis_tuser.val();
        if self.arriving.is_empty() {
            self.arriving_ports = (user.source.to_u8(), user.destination.to_u8());
        }
        let bytes = self.top.m_axis_tdata.val().to_bytes();
        self.arriving.extend_from_slice(&bytes[..keep.count_ones() as usize]);
        if self.top.m_axis_tlast.val() {
            let (source, destination) = self.arriving_ports;
            let bytes = std::mem::take(&mut self.arriving);
            self.report.frames.push(Frame { bytes, source, destination });
            self.leaving = None;
            self.frame_spans.left.push(FrameSpan { first_cycle, last_cycle: now });
        } else if keep != u32::MAX {
            return Err(BoardError::ShortBeat);
        }
        Ok(())
    }

    /// Queues the beats of the first `len` bytes of a frame.
    fn queue(&mut self, frame: &Frame, len: usize) {
        let user = Tuser {
            len: (frame.bytes.len() as u64).into(),
            source: u64::from(frame.source).into(),
            destination: u64::from(frame.destination).into(),
            rest: 0_u64.into(),
        };
        let count = len.div_ceil(BEAT_LEN_BYTES);
        for (at, bytes) in frame.bytes[..len].chunks(BEAT_LEN_BYTES).enumerate() {
            let mut data = [0xee; BEAT_LEN_BYTES];
            data[..bytes.len()].copy_from_slice(bytes);
            let keep = u32::MAX >> (BEAT_LEN_BYTES - bytes.len());
            self.beats.push_back(Beat { data, keep, last: at + 1 == count, user });
        }
    }

    /// Simulates one clock cycle of a loop that waits for the board. Fails if the board has stalled or does not stop
    /// sending.
    fn step_or_give_up(&mut self) -> Result<(), BoardError> {
        self.step(true)?;
        if self.idle >= STALL_CYCLES {
            return Err(BoardError::Stalled);
        }
        if self.cycle - self.fed >= ENDLESS_CYCLES {
            return Err(BoardError::Endless);
        }
        Ok(())
    }

    fn send_queued(&mut self) -> Result<(), BoardError> {
        (self.idle, self.fed) = (0, self.cycle);
        while !self.beats.is_empty() {
            self.step_or_give_up()?;
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), BoardError> {
        (self.idle, self.fed) = (0, self.cycle);
        while self.idle < DRAIN_CYCLES {
            self.step_or_give_up()?;
        }
        Ok(())
    }

    /// Writes a register without waiting for the operation that the write starts.
    pub fn write(&mut self, offset: u16, value: u32) -> Result<(), BoardError> {
        self.top.S_AXI_AWADDR.next = u64::from(offset).into();
        self.top.S_AXI_WDATA.next = u64::from(value).into();
        self.top.S_AXI_AWVALID.next = true;
        self.top.S_AXI_WVALID.next = true;
        self.top.S_AXI_BREADY.next = true;
        self.step(true)?;
        self.top.S_AXI_AWVALID.next = false;
        self.top.S_AXI_WVALID.next = false;
        // The write takes effect two cycles after it is accepted.
        (0..2).try_for_each(|_| self.step(true))
    }

    fn do_command(&mut self, command: &Command) -> Result<(), BoardError> {
        match command {
            Command::Send(frame) => {
                self.queue(frame, frame.bytes.len());
                self.send_queued()?;
            }
            Command::Cut(frame, len) => {
                self.queue(frame, usize::from(*len));
                self.send_queued()?;
            }
            Command::Reset(frame, beats) => {
                self.queue(frame, frame.bytes.len());
                self.beats.truncate(usize::from(*beats));
                self.send_queued()?;
                self.reset()?;
            }
            Command::Drain => self.drain()?,
            Command::Write(offset, value) => self.write(*offset, *value)?,
            Command::Pauses(source, sink) => (self.source, self.sink) = (*source, *sink),
        }
        Ok(())
    }
}

impl Device for RustDevice {
    type Error = BoardError;

    fn run(&mut self, commands: &[Command]) -> Result<Report, Self::Error> {
        self.report = Report::default();
        self.frame_spans = FrameSpans::default();
        self.started = None;
        commands.iter().try_for_each(|command| self.do_command(command))?;
        self.drain()?;
        let mut report = std::mem::take(&mut self.report);
        report.cycles = self.started.map_or(0, |started| self.ended - started + 1);
        Ok(report)
    }

    fn read(&mut self, offset: u16) -> Result<u32, Self::Error> {
        self.top.S_AXI_ARADDR.next = u64::from(offset).into();
        self.top.S_AXI_ARVALID.next = true;
        self.top.S_AXI_RREADY.next = true;
        (self.idle, self.fed) = (0, self.cycle);
        self.step(true)?;
        self.top.S_AXI_ARVALID.next = false;
        while !self.top.S_AXI_RVALID.val() {
            self.step_or_give_up()?;
        }
        let value = self.top.S_AXI_RDATA.val().to_u32();
        self.step(true)?;
        Ok(value)
    }
}
