//! Looking for packets again and again before sleeping.

use std::time::Duration;

/// Decides whether to look again or to sleep until something arrives.
///
/// Waking a sleeping core takes tens of microseconds, about as long as a round trip between two machines. Whoever
/// looks again saves that if something comes soon, and otherwise only takes the core from others; so it is done as
/// long as it pays: not after a wait that was so long that nothing would have come of it.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    limit: Duration,
    pays: bool,
}

/// A wait that ends so many limits later may have been within the limit but for the waking up.
const SLEPT: u32 = 3;

impl Spin {
    /// Looks for that long at most; zero never does.
    pub const fn new(limit: Duration) -> Self {
        Self { limit, pays: true }
    }

    /// Whether to look again, having waited for so long.
    pub fn goes_on(&self, waited: Duration) -> bool {
        self.pays && waited < self.limit
    }

    /// Something has arrived after such a wait.
    pub fn note(&mut self, waited: Duration) {
        self.pays = waited < self.limit * SLEPT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_as_long_as_it_pays() {
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
