//! Counters of a port, and rate-limited reports of its faults.

use std::io;

use super::source::BadSource;

/// Counters of a port since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Number of datagrams received.
    pub received_datagrams: u64,
    /// Number of bytes of UDP payload received.
    pub received_bytes: u64,
    /// Number of system calls that received at least one datagram. The number of datagrams per call shows how effective
    /// receive offload is.
    pub receive_calls: u64,
    /// Number of datagrams that the kernel dropped because the receive buffer was full.
    pub receive_buffer_drops: u64,
    /// Number of receive calls that failed.
    pub receive_errors: u64,
    /// Number of datagrams dropped because they have neither the control nor the data ToS. A raw port leaves such
    /// datagrams to the kernel instead.
    pub untagged: u64,
    /// Number of datagrams whose source MAC address is a group address, dropped without an answer.
    pub source_mac_not_unicast: u64,
    /// Number of datagrams whose source IPv4 address does not identify a single host, dropped without an answer.
    pub source_address_not_unicast: u64,
    /// Number of datagrams whose source UDP port is zero, dropped without an answer.
    pub source_port_zero: u64,
    /// Number of datagrams sent.
    pub sent_datagrams: u64,
    /// Number of bytes of UDP payload sent.
    pub sent_bytes: u64,
    /// Number of system calls that sent at least one datagram.
    pub send_calls: u64,
    /// Number of datagrams lost because the send buffer or the device's queue was full.
    pub send_full: u64,
    /// Number of datagrams lost to any other error.
    pub send_errors: u64,
}

impl PortCounters {
    /// Returns an iterator over the names and values of the counters.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("received_datagrams", self.received_datagrams),
            ("received_bytes", self.received_bytes),
            ("receive_calls", self.receive_calls),
            ("receive_buffer_drops", self.receive_buffer_drops),
            ("receive_errors", self.receive_errors),
            ("untagged", self.untagged),
            ("source_mac_not_unicast", self.source_mac_not_unicast),
            ("source_address_not_unicast", self.source_address_not_unicast),
            ("source_port_zero", self.source_port_zero),
            ("sent_datagrams", self.sent_datagrams),
            ("sent_bytes", self.sent_bytes),
            ("send_calls", self.send_calls),
            ("send_full", self.send_full),
            ("send_errors", self.send_errors),
        ]
        .into_iter()
    }

    /// Counts one receive call that returned a payload of `len` bytes in datagrams of `stride` bytes.
    pub fn received(&mut self, len: usize, stride: usize) {
        self.receive_calls += 1;
        self.received_datagrams += datagrams(len, stride);
        self.received_bytes += len as u64;
    }

    /// Counts datagrams whose sender cannot be answered.
    pub fn refused(&mut self, source: BadSource, datagrams: u64) {
        *match source {
            BadSource::Mac => &mut self.source_mac_not_unicast,
            BadSource::Address => &mut self.source_address_not_unicast,
            BadSource::UdpPort => &mut self.source_port_zero,
        } += datagrams;
    }

    /// Counts one send call with a payload of `len` bytes in datagrams of `stride` bytes.
    pub fn sent(&mut self, len: usize, stride: usize) {
        self.send_calls += 1;
        self.sent_datagrams += datagrams(len, stride);
        self.sent_bytes += len as u64;
    }
}

/// Returns the number of datagrams of `stride` bytes in a payload of `len` bytes.
pub fn datagrams(len: usize, stride: usize) -> u64 {
    len.div_ceil(stride).max(1) as u64
}

/// Faults since the last report. Each kind of fault is reported on one log line.
#[derive(Debug, Default)]
pub struct Faults {
    receive: Option<(u64, io::Error)>,
    send: Option<(u64, io::Error)>,
    drops: u64,
    /// Value of the kernel's drop counter when it was last read.
    drops_seen: u32,
}

impl Faults {
    /// Records a receive call that failed.
    pub fn receive(&mut self, error: io::Error) {
        add(&mut self.receive, 1, error);
    }

    /// Records datagrams that were not sent.
    pub fn send(&mut self, datagrams: u64, error: io::Error) {
        add(&mut self.send, datagrams, error);
    }

    /// Records the kernel's counter of datagrams dropped because the receive buffer was full. The counter wraps.
    pub fn drops(&mut self, counters: &mut PortCounters, total: u32) {
        let new = u64::from(total.wrapping_sub(self.drops_seen));
        self.drops_seen = total;
        counters.receive_buffer_drops += new;
        self.drops += new;
    }

    /// Logs the faults and clears them.
    pub fn report(&mut self, port: &str) {
        if let Some((count, error)) = self.receive.take() {
            tracing::warn!(port, count, %error, "receiving failed");
        }
        if let Some((datagrams, error)) = self.send.take() {
            tracing::warn!(port, datagrams, %error, "sending failed");
        }
        if self.drops > 0 {
            tracing::warn!(
                port,
                datagrams = self.drops,
                "datagrams lost because the receive buffer was full"
            );
            self.drops = 0;
        }
    }
}

fn add(fault: &mut Option<(u64, io::Error)>, count: u64, error: io::Error) {
    let before = fault.take().map_or(0, |(before, _)| before);
    *fault = Some((before + count, error));
}
