//! TensorBoard event files: TFRecord frames around protocol-buffer messages. The encoding is hand-written because
//! scalars need only four fields.
//!
//! A record consists of its length (u64), the masked CRC-32C of the length, the data, and the masked CRC-32C of the
//! data, in little-endian byte order. The data is an `Event` of TensorFlow's `event.proto`: the wall time, the step,
//! and a `Summary` of values with tag and number. The first record contains `brain.Event:2`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An event file, written record by record.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: File,
}

// Field numbers of Event, Summary and Summary.Value.
const EVENT_WALL_TIME: u64 = 1;
const EVENT_STEP: u64 = 2;
const EVENT_FILE_VERSION: u64 = 3;
const EVENT_SUMMARY: u64 = 5;
const SUMMARY_VALUE: u64 = 1;
const VALUE_TAG: u64 = 1;
const VALUE_SIMPLE: u64 = 2;

// Wire types of protocol buffers.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

impl EventWriter {
    /// Creates a file in `directory`, with the time and the process id in its name, as TensorBoard expects.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let (seconds, process) = (now().max(0.0) as u64, std::process::id());
        let path = directory.join(format!("events.out.tfevents.{seconds}.iswitch.{process}"));
        let mut file = File::create(&path)?;
        file.write_all(&record(&version_event(now())))?;
        Ok(Self { path, file })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the named values of one step.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write_scalars(&mut self, step: u64, scalars: &[(&str, f32)]) -> io::Result<()> {
        self.file.write_all(&record(&scalar_event(now(), step, scalars)))
    }
}

/// Returns the seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn version_event(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    put_f64(&mut event, EVENT_WALL_TIME, wall_time);
    put_bytes(&mut event, EVENT_FILE_VERSION, b"brain.Event:2");
    event
}

fn scalar_event(wall_time: f64, step: u64, scalars: &[(&str, f32)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in scalars {
        let mut message = Vec::new();
        put_bytes(&mut message, VALUE_TAG, tag.as_bytes());
        put_varint(&mut message, VALUE_SIMPLE << 3 | FIXED_32);
        message.extend_from_slice(&value.to_le_bytes());
        put_bytes(&mut summary, SUMMARY_VALUE, &message);
    }
    let mut event = Vec::new();
    put_f64(&mut event, EVENT_WALL_TIME, wall_time);
    put_varint(&mut event, EVENT_STEP << 3 | VARINT);
    put_varint(&mut event, step);
    put_bytes(&mut event, EVENT_SUMMARY, &summary);
    event
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_f64(out: &mut Vec<u8>, field: u64, value: f64) {
    put_varint(out, field << 3 | FIXED_64);
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(data.len() + 16);
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked_crc(&length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&masked_crc(data).to_le_bytes());
    out
}

/// Computes the masked CRC. A CRC of data that contains CRCs is weak, so TFRecord rotates it and adds a constant.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fixtures/nn/scalars.tfevents` holds the two records below, written by this encoder and verified once with the
    /// EventAccumulator of Python's tensorboard 2.21: step 300, `charts/episodic_return` 1.5, `losses/x` -0.25, wall
    /// time 1000.5.
    #[test]
    fn records_match_a_file_verified_with_tensorboard() {
        let scalars = [("charts/episodic_return", 1.5), ("losses/x", -0.25)];
        let mut bytes = record(&version_event(1000.25));
        bytes.extend(record(&scalar_event(1000.5, 300, &scalars)));
        let golden = include_bytes!("../../../../../fixtures/nn/scalars.tfevents");
        assert_eq!(bytes, golden);
    }

    #[test]
    fn an_event_file_consists_of_complete_records() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(directory.path()).unwrap();
        writer.write_scalars(7, &[("a", 1.0)]).unwrap();
        let bytes = std::fs::read(writer.path()).unwrap();
        let (mut rest, mut records) = (&bytes[..], 0);
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(rest[8..12], masked_crc(&rest[..8]).to_le_bytes());
            assert_eq!(rest[12 + length..16 + length], masked_crc(&rest[12..12 + length]).to_le_bytes());
            rest = &rest[16 + length..];
            records += 1;
        }
        assert_eq!(records, 2);
    }
}
