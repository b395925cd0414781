//! A card simulated by a child process, which runs the program that `hdl card` builds from the Verilog.
//!
//! The host and the process use the protocol of `hdl/src/simulation/verilated.rs`. The host uses only four of its
//! commands: `S` (sends a frame), `W` and `R` (write and read a register), and `E` (runs until the card is idle).

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::access::{Card, CardError, Frame};

/// Maximum length of the commands that are written at once, in bytes. They fit in a pipe of the default size. The host
/// therefore never blocks on a write while the process waits for the host to read, which would be a deadlock.
const MAX_COMMANDS_LEN_BYTES: usize = 32 << 10;
/// Number of register writes, each followed by reads, that are sent to the process at once.
const WRITES_AT_ONCE: usize = 128;

/// Running simulation of a card. Dropping it closes the input of the process, which then ends.
#[derive(Debug)]
pub struct SimulatedCard {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    commands: Vec<u8>,
    /// Frames that left the card while the host read registers.
    left: Vec<Frame>,
}

impl SimulatedCard {
    /// Starts the program, which resets the card before it executes commands.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn start(program: &Path) -> Result<Self, CardError> {
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("the output is piped"));
        Ok(Self { child, to, from, commands: Vec::with_capacity(MAX_COMMANDS_LEN_BYTES), left: Vec::new() })
    }

    fn flush(&mut self) -> Result<(), CardError> {
        if let Some(to) = &mut self.to {
            to.write_all(&self.commands)?;
        }
        self.commands.clear();
        Ok(())
    }

    fn get<const N: usize>(&mut self) -> Result<[u8; N], CardError> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn push_read(&mut self, offset: u16) {
        self.commands.push(b'R');
        self.commands.extend_from_slice(&offset.to_le_bytes());
    }

    fn push_write(&mut self, offset: u16, value: u32) {
        self.commands.push(b'W');
        self.commands.extend_from_slice(&offset.to_le_bytes());
        self.commands.extend_from_slice(&value.to_le_bytes());
    }

    /// Returns the value of a register, and keeps the frames that leave the card before the value arrives.
    fn get_value(&mut self) -> Result<u32, CardError> {
        loop {
            match self.get::<1>()?[0] {
                b'V' => return Ok(u32::from_le_bytes(self.get()?)),
                b'F' => {
                    let frame = self.get_frame()?;
                    self.left.push(frame);
                }
                code => return Err(CardError::Answer { code, expected: "V or F" }),
            }
        }
    }

    fn get_frame(&mut self) -> Result<Frame, CardError> {
        let len = u16::from_le_bytes(self.get()?);
        let [source, destination] = self.get()?;
        let mut bytes = vec![0; usize::from(len)];
        self.from.read_exact(&mut bytes)?;
        Ok(Frame { bytes, source, destination })
    }

    /// Runs the card until it is idle, and collects the frames that leave it.
    fn run(&mut self, leaving: &mut Vec<Frame>) -> Result<(), CardError> {
        self.commands.push(b'E');
        self.flush()?;
        loop {
            match self.get::<1>()?[0] {
                b'F' => {
                    let frame = self.get_frame()?;
                    leaving.push(frame);
                }
                b'E' => {
                    // The number of cycles and the number of beats.
                    self.get::<16>()?;
                    return Ok(());
                }
                code => return Err(CardError::Answer { code, expected: "F or E" }),
            }
        }
    }
}

impl Drop for SimulatedCard {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

impl Card for SimulatedCard {
    fn read(&mut self, offset: u16) -> Result<u32, CardError> {
        self.push_read(offset);
        self.flush()?;
        self.get_value()
    }

    fn read_after_each(
        &mut self,
        writes: &[(u16, u32)],
        reads: &[u16],
        values: &mut Vec<u32>,
    ) -> Result<(), CardError> {
        for some in writes.chunks(WRITES_AT_ONCE) {
            for (at, value) in some {
                self.push_write(*at, *value);
                reads.iter().for_each(|read| self.push_read(*read));
            }
            self.flush()?;
            for _ in 0..some.len() * reads.len() {
                let value = self.get_value()?;
                values.push(value);
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u16, value: u32) -> Result<(), CardError> {
        self.push_write(offset, value);
        self.flush()
    }

    fn exchange(&mut self, arriving: &[Frame], leaving: &mut Vec<Frame>) -> Result<(), CardError> {
        leaving.append(&mut self.left);
        for frame in arriving {
            if self.commands.len() + frame.bytes.len() + 8 > MAX_COMMANDS_LEN_BYTES {
                self.run(leaving)?;
            }
            self.commands.push(b'S');
            self.commands.extend_from_slice(&(frame.bytes.len() as u16).to_le_bytes());
            self.commands.extend_from_slice(&[frame.source, frame.destination]);
            self.commands.extend_from_slice(&frame.bytes);
        }
        self.run(leaving)
    }
}
