//! The generated Verilog, compiled by Verilator into a program that is controlled through pipes.
//!
//! The program reads commands from standard input and writes answers to standard output. Each command and each answer
//! begins with its code, an ASCII letter. Integers are little-endian.
//!
//! | Command | Meaning | Fields |
//! |---|---|---|
//! | `S` | [`Command::Send`] | len u16, source u8, destination u8, bytes of the frame |
//! | `C` | [`Command::Cut`] | cut u16, then the fields of `S` |
//! | `X` | [`Command::Reset`] | beats u8, then the fields of `S` |
//! | `D` | [`Command::Drain`] | none |
//! | `W` | [`Command::Write`] | offset u16, value u32 |
//! | `P` | [`Command::Pauses`] | source u8, sink u8: codes of the patterns |
//! | `R` | reads a register | offset u16 |
//! | `E` | ends a run | none |
//!
//! | Answer | Meaning | Fields |
//! |---|---|---|
//! | `F` | output frame | the fields of `S` |
//! | `V` | value of the register | value u32 |
//! | `E` | end of the run | cycles u64, beats u64 |
//! | `X` | [`BoardError`], after which the program exits | code u8 |

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::thread;

use super::device::{BoardError, Command, Device, Frame, Report};
use super::verilator::{self, BuildError, Source};

/// Reason why a simulation of the Verilog failed.
#[derive(Debug, thiserror::Error)]
pub enum VerilatedError {
    /// Communication with the simulation program failed.
    #[error("the simulation failed: {0}")]
    Pipe(#[from] io::Error),
    /// The board behaved illegally.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The program sent an unknown answer or an unknown error code.
    #[error("the simulation responded with code {0}, expected F, V, E or X")]
    UnknownAnswer(u8),
}

const DRIVER: &str = include_str!("../../cpp/device.cpp");

/// A board simulated by a Verilator program. Dropping it kills the process.
#[derive(Debug)]
pub struct Verilated {
    child: Child,
    to: Option<BufWriter<ChildStdin>>,
    from: BufReader<ChildStdout>,
}

impl Verilated {
    /// Compiles `verilog`, whose top module must be `iswitch_accel`, using `directory` for the build files, and returns
    /// the path of the executable.
    pub fn build(verilog: &str, directory: &Path) -> Result<PathBuf, BuildError> {
        verilator::compile(Source { top: "iswitch_accel", verilog, driver: DRIVER }, directory)
    }

    /// Starts a program built by [`Self::build`]. The program resets the board before it executes commands.
    pub fn start(program: &Path) -> io::Result<Self> {
        Self::start_with(program, &[])
    }

    /// Starts a program as [`Self::start`] does and passes it command-line arguments, such as plusargs for the Verilog.
    pub fn start_with(program: &Path, arguments: &[String]) -> io::Result<Self> {
        let mut command = Process::new(program);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take().map(BufWriter::new);
        let from = child.stdout.take().map(BufReader::new).expect("the output is piped");
        Ok(Self { child, to, from })
    }
}

impl Drop for Verilated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn put_frame(bytes: &mut Vec<u8>, frame: &Frame) {
    bytes.extend_from_slice(&(frame.bytes.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&[frame.source, frame.destination]);
    bytes.extend_from_slice(&frame.bytes);
}

fn encode(commands: &[Command]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        match command {
            Command::Send(frame) => {
                bytes.push(b'S');
                put_frame(&mut bytes, frame);
            }
            Command::Cut(frame, len) => {
                bytes.push(b'C');
                bytes.extend_from_slice(&len.to_le_bytes());
                put_frame(&mut bytes, frame);
            }
            Command::Reset(frame, beats) => {
                bytes.extend_from_slice(&[b'X', *beats]);
                put_frame(&mut bytes, frame);
            }
            Command::Drain => bytes.push(b'D'),
            Command::Write(offset, value) => {
                bytes.push(b'W');
                bytes.extend_from_slice(&offset.to_le_bytes());
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            Command::Pauses(source, sink) => bytes.extend_from_slice(&[b'P', source.code(), sink.code()]),
        }
    }
    bytes.push(b'E');
    bytes
}

fn get<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_report(from: &mut impl Read) -> Result<Report, VerilatedError> {
    let mut report = Report::default();
    loop {
        match get::<1>(from)?[0] {
            b'F' => {
                let len = u16::from_le_bytes(get(from)?);
                let [source, destination] = get(from)?;
                let mut bytes = vec![0; usize::from(len)];
                from.read_exact(&mut bytes)?;
                report.frames.push(Frame { bytes, source, destination });
            }
            b'E' => {
                report.cycles = u64::from_le_bytes(get(from)?);
                report.beats = u64::from_le_bytes(get(from)?);
                return Ok(report);
            }
            code => return Err(failure(code, from)?),
        }
    }
}

/// Converts an unexpected answer to an error. Reads the error code from `from` if the answer has one.
fn failure(code: u8, from: &mut impl Read) -> io::Result<VerilatedError> {
    if code != b'X' {
        return Ok(VerilatedError::UnknownAnswer(code));
    }
    let [failure] = get(from)?;
    Ok(BoardError::from_code(failure).map_or(VerilatedError::UnknownAnswer(failure), VerilatedError::Board))
}

impl Device for Verilated {
    type Error = VerilatedError;

    fn run(&mut self, commands: &[Command]) -> Result<Report, Self::Error> {
        let bytes = encode(commands);
        let (to, from) = (self.to.as_mut().expect("open until dropped"), &mut self.from);
        // A separate thread writes, because the pipes have little capacity and frames leave while others still enter.
        thread::scope(|scope| {
            let writer = scope.spawn(|| to.write_all(&bytes).and_then(|()| to.flush()));
            let report = read_report(from);
            let written = writer.join().expect("the writer does not panic");
            // A board that has failed reads no further input, so its report takes precedence over a write error.
            let report = report?;
            written?;
            Ok(report)
        })
    }

    fn read(&mut self, offset: u16) -> Result<u32, Self::Error> {
        let to = self.to.as_mut().expect("open until dropped");
        to.write_all(b"R")?;
        to.write_all(&offset.to_le_bytes())?;
        to.flush()?;
        match get::<1>(&mut self.from)?[0] {
            b'V' => Ok(u32::from_le_bytes(get(&mut self.from)?)),
            code => Err(failure(code, &mut self.from)?),
        }
    }
}
