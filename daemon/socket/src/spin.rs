//! Polling for packets before blocking.

use std::time::Duration;

/// Policy that decides whether to poll again or to block until a packet arrives.
///
/// Waking a sleeping core takes tens of microseconds, about as long as a round trip between two machines. Polling saves
/// that time if a packet arrives soon; otherwise it only takes the core from other processes. The policy therefore
/// keeps polling as long as packets arrive soon enough to be found by polling, and stops after a longer wait.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    limit: Duration,
    pays: bool,
}

/// A wait counts as short if it is shorter than this multiple of the polling limit. The multiple allows for the wake-up
/// latency of the core, which a measured wait includes even if the packet arrived within the limit.
const SLEPT: u32 = 3;

impl Spin {
    /// Returns a policy that polls for at most `limit`; if `limit` is zero, it never polls.
    pub const fn new(limit: Duration) -> Self {
        Self { limit, pays: true }
    }

    /// Returns whether to poll again if the loop has already waited for `waited`.
    pub fn goes_on(&self, waited: Duration) -> bool {
        self.pays && waited < self.limit
    }

    /// Records that a packet arrived after a wait of this length.
    pub fn note(&mut self, waited: Duration) {
        self.pays = waited < self.limit * SLEPT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_continues_only_while_it_pays_off() {
        let [short, slept, long] = [10, 100, 200].map(Duration::from_micros);
        let mut spin = Spin::new(Duration::from_micros(50));
        assert!(spin.goes_on(short) && !spin.goes_on(slept));
        spin.note(long);
        assert!(!spin.goes_on(short));
        spin.note(slept);
        assert!(spin.goes_on(short));
        assert!(!Spin::new(Duration::ZERO).goes_on(Duration::ZERO));
    }
}
