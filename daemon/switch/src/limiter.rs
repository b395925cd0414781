//! Rate limits on non-members ("strangers"): token buckets in a table of fixed size.
//!
//! Anyone can send a Join, with any source address. A packet from a stranger costs processing time. It also causes an
//! answer, which the owner of the address receives, and perhaps an entry in the table of jobs. Therefore each source
//! IPv4 address has a bucket, and all strangers together share another bucket. Packets beyond these limits are dropped
//! without an answer and without an event. A worker whose Join is dropped repeats it. Packets from members are not
//! limited here.
//!
//! The buckets are a count-min sketch with conservative update (Estan and Varghese, "New Directions in Traffic
//! Measurement and Accounting", SIGCOMM 2002). An address has one cell in each row, and its bucket is as full as the
//! fullest of these cells, so no address ever exceeds its rate. An address gets less than its rate only if other
//! addresses have emptied its cells in all rows, and a sender that does not know the secret cannot target specific
//! cells. A cell is a single number, the theoretical arrival time of the generic cell rate algorithm (ITU-T I.371).

use core::net::Ipv4Addr;

use alloc::vec;
use alloc::vec::Vec;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::{STRANGER_BURST_S, STRANGER_CELLS, STRANGER_ROWS};
use siphasher::sip::SipHasher13;

use crate::keys::SECRET_LEN_BYTES;

const NANOS_PER_S: u64 = 1_000_000_000;
const BURST_NS: u64 = STRANGER_BURST_S * NANOS_PER_S;

/// Limits on packets from non-members.
#[derive(Clone, Copy, Debug)]
pub struct StrangerLimits {
    /// Maximum rate of packets from one IPv4 address, in packets per second; zero counts as one. A bucket holds as many
    /// packets as arrive in [`STRANGER_BURST_S`] seconds at this rate.
    pub source_rate: u32,
    /// Maximum rate of packets from all non-members together, in packets per second; zero counts as one. The shared
    /// bucket also holds as many packets as arrive in [`STRANGER_BURST_S`] seconds at this rate.
    pub total_rate: u32,
    /// Secret, drawn at random for each run. A sender that knows the secret can choose addresses whose cells are also
    /// those of other addresses. It is not derived from the boot id, because every Ack contains the boot id.
    pub key: [u8; SECRET_LEN_BYTES],
}

impl Default for StrangerLimits {
    /// Returns rates that suffice for 64 workers that share one address and all repeat their Joins. The secret is only
    /// a placeholder.
    fn default() -> Self {
        Self { source_rate: 256, total_rate: 4096, key: [0; SECRET_LEN_BYTES] }
    }
}

/// Kind of packet that a non-member has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StrangerPacket {
    /// A control packet, such as a Join.
    Control,
    /// Data packets, of which a forgotten member sends many at once. Data packets may use only half of each bucket, so
    /// that the member's Joins are still admitted.
    Data,
}

/// All buckets.
#[derive(Debug)]
pub(crate) struct Limiter {
    hasher: SipHasher13,
    source_interval_ns: u64,
    total_interval_ns: u64,
    /// Instant at which each bucket will be full again, in nanoseconds of the driver's clock. There is one vector for
    /// each row.
    rows: [Vec<u64>; STRANGER_ROWS],
    total: u64,
}

impl Limiter {
    pub(crate) fn new(limits: &StrangerLimits) -> Self {
        Self {
            hasher: SipHasher13::new_with_key(&limits.key),
            source_interval_ns: interval_ns(limits.source_rate),
            total_interval_ns: interval_ns(limits.total_rate),
            rows: core::array::from_fn(|_| vec![0; STRANGER_CELLS]),
            total: 0,
        }
    }

    /// Changes the rates. Buckets that are full stay full; the secret stays the same.
    pub(crate) fn set_rates(&mut self, limits: &StrangerLimits) {
        self.source_interval_ns = interval_ns(limits.source_rate);
        self.total_interval_ns = interval_ns(limits.total_rate);
    }

    /// Takes one token from the bucket of the source and one from the shared bucket. If either bucket is empty, takes
    /// no token. Returns whether the packet is admitted.
    pub(crate) fn admit(&mut self, now: Instant, source: Ipv4Addr, packet: StrangerPacket) -> bool {
        let now = now.as_nanos();
        let cells = self.cells(source);
        let fullest = cells.iter().zip(&self.rows).map(|(cell, row)| row[*cell]).min().unwrap_or(0);
        let depth = match packet {
            StrangerPacket::Control => BURST_NS,
            StrangerPacket::Data => BURST_NS / 2,
        };
        let (Some(of_source), Some(of_all)) = (
            taken(fullest, now, self.source_interval_ns, depth),
            taken(self.total, now, self.total_interval_ns, depth),
        ) else {
            return false;
        };
        for (cell, row) in cells.into_iter().zip(&mut self.rows) {
            row[cell] = row[cell].max(of_source);
        }
        self.total = of_all;
        true
    }

    /// Returns the cells of an address, one in each row. Each cell is selected by different bits of one hash.
    fn cells(&self, source: Ipv4Addr) -> [usize; STRANGER_ROWS] {
        let hash = self.hasher.hash(&source.octets());
        core::array::from_fn(|row| {
            (hash >> (row as u32 * u64::BITS / STRANGER_ROWS as u32)) as usize % STRANGER_CELLS
        })
    }
}

/// Returns the time in nanoseconds in which a bucket that is refilled with `rate` tokens per second receives one token.
fn interval_ns(rate: u32) -> u64 {
    NANOS_PER_S / u64::from(rate.max(1))
}

/// Returns the instant at which a bucket will be full again after a token is taken from it, or `None` if that instant
/// would be more than `depth_ns` nanoseconds after `now`.
fn taken(full_at: u64, now: u64, interval_ns: u64, depth_ns: u64) -> Option<u64> {
    let full_at = full_at.max(now) + interval_ns;
    (full_at - now <= depth_ns).then_some(full_at)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const LIMITS: StrangerLimits =
        StrangerLimits { source_rate: 10, total_rate: 1000, key: [1; SECRET_LEN_BYTES] };
    const BURST: usize = 10 * STRANGER_BURST_S as usize;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(0).plus(Duration::from_millis(ms))
    }

    fn admitted(limiter: &mut Limiter, ms: u64, source: u32, packet: StrangerPacket, count: usize) -> usize {
        (0..count).filter(|_| limiter.admit(at(ms), source.into(), packet)).count()
    }

    #[test]
    fn a_bucket_drains_and_refills_at_its_rate() {
        let mut limiter = Limiter::new(&LIMITS);
        assert_eq!(admitted(&mut limiter, 0, 1, StrangerPacket::Control, 1000), BURST);
        assert_eq!(admitted(&mut limiter, 99, 1, StrangerPacket::Control, 10), 0);
        assert_eq!(admitted(&mut limiter, 500, 1, StrangerPacket::Control, 100), 5);
        assert_eq!(
            admitted(&mut limiter, 3_600_000, 1, StrangerPacket::Control, 1000),
            BURST,
            "the counters should not overflow"
        );
    }

    #[test]
    fn data_packets_leave_half_of_the_bucket_for_joins() {
        let mut limiter = Limiter::new(&LIMITS);
        assert_eq!(admitted(&mut limiter, 0, 1, StrangerPacket::Data, 1000), BURST / 2);
        assert_eq!(admitted(&mut limiter, 0, 1, StrangerPacket::Control, 1000), BURST / 2);
    }

    #[test]
    fn one_source_does_not_consume_the_budget_of_another() {
        let mut limiter = Limiter::new(&LIMITS);
        admitted(&mut limiter, 0, 1, StrangerPacket::Control, 1_000_000);
        assert_eq!(
            admitted(&mut limiter, 0, 2, StrangerPacket::Control, 1000),
            BURST,
            "refused packets should not be charged"
        );
    }

    #[test]
    fn the_total_rate_of_all_sources_is_limited() {
        let mut limiter = Limiter::new(&LIMITS);
        let total: usize =
            (0..100_000).map(|source| admitted(&mut limiter, 0, source, StrangerPacket::Control, 1)).sum();
        assert_eq!(total, 1000 * STRANGER_BURST_S as usize);
    }

    #[test]
    fn the_key_determines_which_sources_share_cells() {
        let cells = |key| Limiter::new(&StrangerLimits { key, ..LIMITS }).cells(Ipv4Addr::LOCALHOST);
        assert_ne!(cells([1; SECRET_LEN_BYTES]), cells([2; SECRET_LEN_BYTES]));
    }

    proptest! {
        /// Checks that no source exceeds its burst and its rate, regardless of which sources share its cells.
        #[test]
        fn no_source_exceeds_its_rate(steps in proptest::collection::vec((0u32..20_000, 0u64..20), 1..3000)) {
            let mut limiter = Limiter::new(&StrangerLimits { total_rate: 1_000_000, ..LIMITS });
            let (mut now_ms, mut count) = (0, 0);
            for (source, wait_ms) in steps {
                now_ms += wait_ms;
                limiter.admit(at(now_ms), source.into(), StrangerPacket::Control);
                count += admitted(&mut limiter, now_ms, 7, StrangerPacket::Control, 2);
            }
            prop_assert!(count as u64 <= BURST as u64 + now_ms / 100);
        }
    }
}
