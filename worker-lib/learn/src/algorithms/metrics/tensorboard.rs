//! TensorBoard event files: TFRecord frames around protocol-buffer messages. The encoding is hand-written because
//! scalars and texts need only a few fields.
//!
//! A record consists of the length of its data (u64), the masked CRC-32C of the length, the data, and the masked
//! CRC-32C of the data, all in little-endian byte order. The data is an `Event` of TensorFlow's `event.proto`: the wall
//! time, the step, and a `Summary` of values, each with a tag and a number. A text is a string tensor whose metadata
//! names the plugin `text`. The first record contains `brain.Event:2`.

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

// Field numbers of Event, Summary, Summary.Value, SummaryMetadata and TensorProto.
const EVENT_WALL_TIME: u64 = 1;
const EVENT_STEP: u64 = 2;
const EVENT_FILE_VERSION: u64 = 3;
const EVENT_SUMMARY: u64 = 5;
const SUMMARY_VALUE: u64 = 1;
const VALUE_TAG: u64 = 1;
const VALUE_SIMPLE: u64 = 2;
const VALUE_TENSOR: u64 = 8;
const VALUE_METADATA: u64 = 9;
const METADATA_PLUGIN: u64 = 1;
const PLUGIN_NAME: u64 = 1;
const TENSOR_TYPE: u64 = 1;
const TENSOR_SHAPE: u64 = 2;
const TENSOR_STRING: u64 = 8;
const SHAPE_DIMENSION: u64 = 2;
const DIMENSION_SIZE: u64 = 1;

/// Value of `DT_STRING` in TensorFlow's `types.proto`.
const STRING: u64 = 7;
/// Suffix that TensorFlow and PyTorch add to the tags of texts.
const TEXT_SUFFIX: &str = "/text_summary";

// Wire types of protocol buffers.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

impl EventWriter {
    /// Creates an event file in `directory`. As TensorBoard expects, the file name contains the time and the process
    /// id.
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

    /// Writes a named text, which TensorBoard displays as Markdown, at step 0.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write_text(&mut self, tag: &str, text: &str) -> io::Result<()> {
        self.file.write_all(&record(&text_event(now(), tag, text)))
    }
}

/// Returns the current time, in seconds since the Unix epoch.
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
    summary_event(wall_time, step, &summary)
}

fn text_event(wall_time: f64, tag: &str, text: &str) -> Vec<u8> {
    let (mut dimension, mut shape, mut tensor) = (Vec::new(), Vec::new(), Vec::new());
    put_number(&mut dimension, DIMENSION_SIZE, 1);
    put_bytes(&mut shape, SHAPE_DIMENSION, &dimension);
    put_number(&mut tensor, TENSOR_TYPE, STRING);
    put_bytes(&mut tensor, TENSOR_SHAPE, &shape);
    put_bytes(&mut tensor, TENSOR_STRING, text.as_bytes());
    let (mut plugin, mut metadata) = (Vec::new(), Vec::new());
    put_bytes(&mut plugin, PLUGIN_NAME, b"text");
    put_bytes(&mut metadata, METADATA_PLUGIN, &plugin);
    let (mut value, mut summary) = (Vec::new(), Vec::new());
    put_bytes(&mut value, VALUE_TAG, [tag, TEXT_SUFFIX].concat().as_bytes());
    put_bytes(&mut value, VALUE_TENSOR, &tensor);
    put_bytes(&mut value, VALUE_METADATA, &metadata);
    put_bytes(&mut summary, SUMMARY_VALUE, &value);
    summary_event(wall_time, 0, &summary)
}

fn summary_event(wall_time: f64, step: u64, summary: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    put_f64(&mut event, EVENT_WALL_TIME, wall_time);
    // A missing step means step 0.
    if step > 0 {
        put_number(&mut event, EVENT_STEP, step);
    }
    put_bytes(&mut event, EVENT_SUMMARY, summary);
    event
}

fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3 | VARINT);
    put_varint(out, value);
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

/// Computes the masked CRC. A CRC over data that itself contains CRCs detects errors poorly, so TFRecord rotates each
/// CRC and adds a constant.
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

    /// `fixtures/nn/text.tfevents` holds the two records below, written by the classes of Python's tensorboard 2.21.
    #[test]
    fn texts_match_those_of_tensorboard() {
        let mut bytes = record(&version_event(1000.25));
        let table = "|param|value|\n|-|-|\n|gamma|0.99|";
        bytes.extend(record(&text_event(1000.5, "hyperparameters", table)));
        assert_eq!(bytes, include_bytes!("../../../../../fixtures/nn/text.tfevents"));
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
