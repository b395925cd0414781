//! The last events before a violation, one line each.

use std::collections::VecDeque;
use std::fmt;

use iswitch_protocol::Instant;
use iswitch_protocol::wire::{Class, ControlBody, ControlPacket, ControlRepr, DataPacket};

/// A ring buffer of lines. When the transcript is off, it costs nothing. A failing seed is run again with the
/// transcript on.
#[derive(Debug, Default)]
pub struct Transcript {
    lines: VecDeque<String>,
    capacity: usize,
}

impl Transcript {
    /// Creates a transcript that keeps nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// Creates a transcript that keeps the last `capacity` lines.
    pub fn of_last(capacity: usize) -> Self {
        Self { lines: VecDeque::with_capacity(capacity), capacity }
    }

    /// Adds a line; the closure runs only if the line is kept.
    pub(crate) fn note(&mut self, at: Instant, line: impl FnOnce() -> String) {
        if self.capacity == 0 {
            return;
        }
        if self.lines.len() == self.capacity {
            self.lines.pop_front();
        }
        let micros = at.as_nanos() as f64 / 1e3;
        self.lines.push_back(format!("{micros:>13.3} us  {}", line()));
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Returns whether a packet is only a heartbeat. A transcript omits heartbeats because they would fill its last
/// lines.
pub(super) fn is_heartbeat(class: Class, bytes: &[u8]) -> bool {
    class == Class::Control
        && ControlPacket::new_checked(bytes)
            .and_then(|packet| ControlRepr::parse(&packet).map(|repr| repr.body == ControlBody::HEARTBEAT))
            .unwrap_or(false)
}

/// Describes the packets of a super-frame briefly.
pub(crate) fn describe(class: Class, payload: &[u8], stride: usize) -> String {
    let packets: Vec<_> = payload.chunks(stride.max(1)).map(|bytes| describe_one(class, bytes)).collect();
    packets.join(", ")
}

fn describe_one(class: Class, bytes: &[u8]) -> String {
    match class {
        Class::Data => DataPacket::new_checked(bytes).map_or_else(
            |error| format!("data? {error}"),
            |packet| {
                let seg = packet.seg();
                format!("data {}:{} x{}", seg.round, seg.index.get(), seg.contributions)
            },
        ),
        Class::Control => {
            let repr = ControlPacket::new_checked(bytes).and_then(|packet| ControlRepr::parse(&packet));
            repr.map_or_else(|error| format!("control? {error}"), |repr| describe_control(&repr))
        }
    }
}

fn describe_control(repr: &ControlRepr<'_>) -> String {
    let request = repr.request;
    match &repr.body {
        ControlBody::Ack(ack) => {
            let missing = ack.missing.map(|set| set.indices().collect::<Vec<_>>());
            format!(
                "Ack #{request} of {:?}: {} {:?} member {} of {} H {} round {} expected {} boot {:x} \
                 missing {missing:?}",
                ack.action,
                ack.status.name(),
                ack.standing,
                ack.member,
                ack.members,
                ack.threshold,
                ack.round,
                ack.expected,
                ack.boot
            )
        }
        ControlBody::Help(wanted) => {
            format!(
                "Help #{request} round {} wants {:?}",
                wanted.range.round,
                wanted.indices().collect::<Vec<_>>()
            )
        }
        body => format!("#{request} {body:?}"),
    }
}
