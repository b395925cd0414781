//! Counters of a server, available to programs as [`Stats`] and to Prometheus as text.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Counters that threads update concurrently.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) refusals: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) slow_readers_cut: AtomicU64,
    pub(crate) handshakes_failed: AtomicU64,
    pub(crate) fetches: AtomicU64,
    pub(crate) fetched_bytes: AtomicU64,
    pub(crate) fetches_failed: AtomicU64,
    pub(crate) pointer_requests: AtomicU64,
    pub(crate) pointer_failures: AtomicU64,
    pub(crate) stale_pointers_served: AtomicU64,
    pub(crate) names: AtomicU64,
    pub(crate) names_unknown: AtomicU64,
    pub(crate) names_displaced: AtomicU64,
    pub(crate) kept_bytes: AtomicU64,
}

/// Statistics of a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Number of answered requests.
    pub requests: u64,
    /// Number of requests answered with an error.
    pub refusals: u64,
    /// Number of bytes written to connections.
    pub sent_bytes: u64,
    /// Number of open connections.
    pub connections: u64,
    /// Number of connections refused because of the limit.
    pub connections_refused: u64,
    /// Number of slow readers that were disconnected.
    pub slow_readers_cut: u64,
    /// Number of TLS handshakes that failed or timed out.
    pub handshakes_failed: u64,
    /// Number of objects that a cell has started to fetch from upstream.
    pub fetches: u64,
    /// Number of object bytes that a cell has received.
    pub fetched_bytes: u64,
    /// Number of objects that a cell could not fetch completely.
    pub fetches_failed: u64,
    /// Number of requests for a pointer that a cell has sent to upstream.
    pub pointer_requests: u64,
    /// Number of pointer requests that failed.
    pub pointer_failures: u64,
    /// Number of stale pointers that the cell served while it queried upstream for a newer version.
    pub stale_pointers_served: u64,
    /// Number of models that the server knows.
    pub names: u64,
    /// Number of names that readers request from a cell although its upstream has no model for them yet.
    pub names_unknown: u64,
    /// Number of times that an unknown name was displaced by another one.
    pub names_displaced: u64,
    /// Total size of the kept models, in bytes.
    pub kept_bytes: u64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            requests: of(&self.requests),
            refusals: of(&self.refusals),
            sent_bytes: of(&self.sent_bytes),
            connections: of(&self.connections),
            connections_refused: of(&self.connections_refused),
            slow_readers_cut: of(&self.slow_readers_cut),
            handshakes_failed: of(&self.handshakes_failed),
            fetches: of(&self.fetches),
            fetched_bytes: of(&self.fetched_bytes),
            fetches_failed: of(&self.fetches_failed),
            pointer_requests: of(&self.pointer_requests),
            pointer_failures: of(&self.pointer_failures),
            stale_pointers_served: of(&self.stale_pointers_served),
            names: of(&self.names),
            names_unknown: of(&self.names_unknown),
            names_displaced: of(&self.names_displaced),
            kept_bytes: of(&self.kept_bytes),
        }
    }
}

impl Stats {
    /// Returns the counters in the Prometheus text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, kind, value) in [
            ("requests_total", "counter", self.requests),
            ("refusals_total", "counter", self.refusals),
            ("sent_bytes_total", "counter", self.sent_bytes),
            ("connections", "gauge", self.connections),
            ("connections_refused_total", "counter", self.connections_refused),
            ("slow_readers_cut_total", "counter", self.slow_readers_cut),
            ("handshakes_failed_total", "counter", self.handshakes_failed),
            ("fetches_total", "counter", self.fetches),
            ("fetched_bytes_total", "counter", self.fetched_bytes),
            ("fetches_failed_total", "counter", self.fetches_failed),
            ("pointer_requests_total", "counter", self.pointer_requests),
            ("pointer_failures_total", "counter", self.pointer_failures),
            ("stale_pointers_served_total", "counter", self.stale_pointers_served),
            ("names", "gauge", self.names),
            ("names_unknown", "gauge", self.names_unknown),
            ("names_displaced_total", "counter", self.names_displaced),
            ("kept_bytes", "gauge", self.kept_bytes),
        ] {
            let name = format!("iswitch_models_{name}");
            let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}
