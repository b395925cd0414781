//! Simulation of the path of one segment through the accelerator, for `hdl simulate`.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use iswitch_protocol::wire::Class;
use iswitch_protocol::{Round, Seg, SegmentIndex, VectorLayout};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::accelerator::Build;
use crate::accelerator::records::{MAX_FLOATS, MEMBERS};
use crate::adder::add;
use crate::host::{JobSetup, Member, PACE_10G, SetupError, contribution, member_frame, result_frame};
use crate::simulation::{
    BoardError, CYCLE_PS, Command, Device as _, Frame, FrameSpan, FrameSpans, RustDevice,
};
use crate::stage_chart::{self, Frames};

const ORDINARY_LEN_BYTES: usize = 96;
/// Number of floats in a burst. The accelerator adds the floats of a burst in parallel.
const BURST_FLOATS: usize = 8;

/// Configuration of a walkthrough.
#[derive(Clone, Debug)]
pub struct Walkthrough {
    /// Build of the accelerator.
    pub build: Build,
    /// Number of workers that contribute, 1 to 8.
    pub workers: u8,
    /// Number of floats in the segment, 1 to 366.
    pub floats: u16,
    /// Seed for the floats.
    pub seed: u64,
    /// Value Change Dump file for the waveforms.
    pub vcd: Option<PathBuf>,
    /// SVG file for a chart that shows when each stage is active. Requires `vcd`.
    pub svg: Option<PathBuf>,
}

/// Clock cycles in which the frames entered and left the accelerator.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FrameTimings {
    /// Contributions at the input, one per worker.
    pub contributions: Vec<FrameSpan>,
    /// Ordinary frame at the input, sent immediately before the last contribution.
    pub ordinary_in: FrameSpan,
    /// The ordinary frame at the output.
    pub ordinary_out: FrameSpan,
    /// The result at the output.
    pub result: FrameSpan,
    /// Number of clock cycles from the last beat of the last contribution to the last beat of the result.
    pub latency_cycles: u64,
}

/// Reason why a walkthrough failed.
#[derive(Debug, thiserror::Error)]
pub enum WalkthroughError {
    /// The hardware cannot run the job.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The simulated board failed.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The waveforms or the chart cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The chart cannot be drawn because the waveforms cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The frames sent by the simulated board are wrong.
    #[error("the board sent {0:?}, expected the ordinary frame and the sum of the contributions")]
    Wrong(Vec<Frame>),
}

impl Walkthrough {
    /// Sends one contribution from each worker back to back, with an ordinary frame before the last contribution.
    /// Compares the result with the sum that [`add`] computes. Writes the waveforms and the chart if their files are
    /// given.
    ///
    /// # Errors
    /// Fails if the board fails or sends wrong frames, or if a file cannot be written or read.
    ///
    /// # Panics
    /// Panics if the number of workers or floats is out of range.
    pub fn run(&self) -> Result<FrameTimings, WalkthroughError> {
        assert!(
            (1..=MEMBERS).contains(&usize::from(self.workers)) && (1..=MAX_FLOATS).contains(&self.floats)
        );
        let (commands, expected) = self.frames();
        let mut device = RustDevice::new(self.build);
        let writes = self.setup().writes()?;
        let configure: Vec<_> = writes.into_iter().map(|(at, value)| Command::Write(at, value)).collect();
        device.run(&configure)?;
        if let Some(path) = &self.vcd {
            let begun = File::create(path).and_then(|file| device.trace(file));
            begun.map_err(|source| WalkthroughError::Write { path: path.clone(), source })?;
        }
        let report = device.run(&commands)?;
        if let Some(path) = &self.vcd {
            device.end_trace().map_err(|source| WalkthroughError::Write { path: path.clone(), source })?;
        }
        let bytes: Vec<_> = report.frames.iter().map(|frame| &frame.bytes).collect();
        if bytes != expected.iter().collect::<Vec<_>>() {
            return Err(WalkthroughError::Wrong(report.frames));
        }
        let timings = Self::timings(&device);
        if let (Some(vcd), Some(svg)) = (&self.vcd, &self.svg) {
            self.draw(vcd, svg, device.frame_spans())?;
        }
        Ok(timings)
    }

    fn timings(device: &RustDevice) -> FrameTimings {
        let frame_spans = device.frame_spans();
        let mut contributions = frame_spans.entered.clone();
        let ordinary_in = contributions.remove(contributions.len() - 2);
        let last = contributions[contributions.len() - 1].last_cycle;
        let (ordinary_out, result) = (frame_spans.left[0], frame_spans.left[1]);
        FrameTimings {
            contributions,
            ordinary_in,
            ordinary_out,
            result,
            latency_cycles: result.last_cycle - last,
        }
    }

    fn draw(&self, vcd: &Path, svg: &Path, frame_spans: &FrameSpans) -> Result<(), WalkthroughError> {
        let Self { workers, floats, .. } = self;
        let title =
            format!("Stages of the accelerator over time: a segment of {floats} floats, {workers} workers");
        let left = [frame_spans.left[0], frame_spans.left[1]];
        let frames = Frames {
            entered: &frame_spans.entered,
            left,
            bursts: usize::from(*floats).div_ceil(BURST_FLOATS),
        };
        let read = |source| WalkthroughError::Read { path: vcd.to_owned(), source };
        let dump = BufReader::new(File::open(vcd).map_err(read)?);
        let chart = stage_chart::draw(dump, title, &frames, left[1].last_cycle + 4).map_err(read)?;
        fs::write(svg, chart).map_err(|source| WalkthroughError::Write { path: svg.to_owned(), source })
    }

    fn setup(&self) -> JobSetup {
        let floats = self.floats;
        JobSetup {
            id: 1,
            layout: VectorLayout::new(u32::from(floats), floats).expect("floats are in range"),
            base: Round::new(0),
            threshold: self.workers,
            members: (0..self.workers)
                .map(|number| Member { address: address(number), is_switch: false, port: port(number) })
                .collect(),
            pace: PACE_10G,
            forwards_strangers: false,
        }
    }

    /// Returns the input commands and the two expected output frames.
    fn frames(&self) -> (Vec<Command>, [Vec<u8>; 2]) {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let seg = |contributions| Seg {
            index: SegmentIndex::new(0).expect("there is a first segment"),
            round: Round::new(0),
            contributions,
        };
        let mut sum = vec![0; usize::from(self.floats)];
        let mut commands = Vec::new();
        for number in 0..self.workers {
            let floats: Vec<_> = sum.iter().map(|_| random.random_range(-1.0_f32..1.0).to_bits()).collect();
            sum = sum.iter().zip(&floats).map(|(a, b)| add(*a, *b)).collect();
            let bytes = member_frame(address(number), Class::Data, &contribution(seg(1), &floats));
            commands.push(Command::Send(Frame { bytes, source: port(number), destination: 0 }));
        }
        let mut ordinary = vec![0; ORDINARY_LEN_BYTES];
        random.fill_bytes(&mut ordinary);
        // EtherType of IPv6.
        ordinary[12..14].copy_from_slice(&[0x86, 0xdd]);
        let frame = Frame { bytes: ordinary.clone(), source: 1, destination: 0 };
        commands.insert(commands.len() - 1, Command::Send(frame));
        (commands, [ordinary, result_frame(&contribution(seg(u16::from(self.workers)), &sum))])
    }
}

/// Returns the network port of a worker, in the one-hot encoding of `tuser`.
fn port(number: u8) -> u8 {
    1 << (2 * (number % 4))
}

fn address(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 10 + number), 4000)
}

impl fmt::Display for FrameTimings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28}{:>12}{:>12}", "", "first cycle", "last cycle")?;
        let mut line = |name: &str, span: &FrameSpan| {
            writeln!(f, "{name:<28}{:>12}{:>12}", span.first_cycle, span.last_cycle)
        };
        for (number, span) in self.contributions.iter().enumerate() {
            line(&format!("contribution {number} enters"), span)?;
        }
        line("ordinary frame enters", &self.ordinary_in)?;
        line("ordinary frame leaves", &self.ordinary_out)?;
        line("result leaves", &self.result)?;
        let cycles = self.latency_cycles;
        write!(
            f,
            "from the last input beat to the last output beat: {cycles} cycles, {} ns at 200 MHz",
            cycles * CYCLE_PS / 1000
        )
    }
}
