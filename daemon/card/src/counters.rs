//! The counters of the card.

use crate::access::{Card, CardError};
use crate::registers::offset;

/// Registers that count, in the order of [`CardCounters::iter`], with the names of the counters.
const COUNTERS: [(&str, u16); 22] = [
    ("frames_received", offset::PKTIN),
    ("frames_sent", offset::PKTOUT),
    ("stalled_cycles", offset::HAZARDS),
    ("requests_skipped", offset::SKIPPED),
    ("ordinary", word(0)),
    ("control", word(1)),
    ("summed", word(2)),
    ("completed", word(3)),
    ("forced", word(4)),
    ("unknown_member", word(5)),
    ("malformed", word(6)),
    ("halted", word(7)),
    ("seg_out_of_range", word(8)),
    ("length_mismatch", word(9)),
    ("bad_weight", word(10)),
    ("duplicate", word(11)),
    ("late", word(12)),
    ("stale_round", word(13)),
    ("early_round", word(14)),
    ("not_participant", word(15)),
    ("repeated", word(16)),
    ("unanswered", word(17)),
];
/// Positions of the drop reasons in [`COUNTERS`].
const DROPS: std::ops::Range<usize> = 9..20;

/// Returns the offset of a word of [`offset::COUNTERS`].
const fn word(number: u16) -> u16 {
    offset::COUNTERS + 4 * number
}

/// Counters of a card since the host began to read them.
///
/// The registers have 32 bits and wrap: at line rate, the number of frames received wraps after 72 s. The totals have
/// 64 bits, and are correct if [`Self::refresh`] is called more often than that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardCounters {
    registers: [u32; COUNTERS.len()],
    totals: [u64; COUNTERS.len()],
}

impl CardCounters {
    /// Returns counters that are all zero, whatever the card has counted so far.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn new(card: &mut dyn Card) -> Result<Self, CardError> {
        Ok(Self { registers: registers(card)?, totals: [0; COUNTERS.len()] })
    }

    /// Adds what the card has counted since the previous call.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn refresh(&mut self, card: &mut dyn Card) -> Result<(), CardError> {
        let now = registers(card)?;
        for ((total, now), before) in self.totals.iter_mut().zip(now).zip(self.registers) {
            *total += u64::from(now.wrapping_sub(before));
        }
        self.registers = now;
        Ok(())
    }

    /// Returns an iterator over the names and values of all counters except the reasons of drops.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.all().enumerate().filter(|(at, _)| !DROPS.contains(at)).map(|(_, counter)| counter)
    }

    /// Returns an iterator over the numbers of dropped contributions, with their reasons.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.all().skip(DROPS.start).take(DROPS.len())
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        COUNTERS.iter().map(|(name, _)| *name).zip(self.totals)
    }
}

fn registers(card: &mut dyn Card) -> Result<[u32; COUNTERS.len()], CardError> {
    let mut values = [0; COUNTERS.len()];
    for (value, (_, at)) in values.iter_mut().zip(COUNTERS) {
        *value = card.read(at)?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Frame;

    /// A card whose registers all have the same value.
    struct Constant(u32);

    impl Card for Constant {
        fn read(&mut self, _offset: u16) -> Result<u32, CardError> {
            Ok(self.0)
        }

        fn write(&mut self, _offset: u16, _value: u32) -> Result<(), CardError> {
            Ok(())
        }

        fn exchange(&mut self, _arriving: &[Frame], _leaving: &mut Vec<Frame>) -> Result<(), CardError> {
            Ok(())
        }
    }

    #[test]
    fn totals_begin_at_zero_and_survive_a_wrap() {
        let mut card = Constant(u32::MAX - 1);
        let mut counters = CardCounters::new(&mut card).unwrap();
        assert!(counters.iter().chain(counters.drops()).all(|(_, total)| total == 0));
        for (value, expected) in [(u32::MAX, 1), (3, 5), (3, 5)] {
            card.0 = value;
            counters.refresh(&mut card).unwrap();
            assert!(counters.iter().chain(counters.drops()).all(|(_, total)| total == expected));
        }
    }

    #[test]
    fn the_names_are_those_of_the_register_list() {
        let counters = crate::registers::REGISTERS.iter().find(|register| register.name == "COUNTERS");
        let content = counters.expect("the list has the counters").content;
        let listed: Vec<_> = content.split([' ', ',', ':', ';', '(']).collect();
        let of_array = &COUNTERS[4..];
        let mut positions = of_array.iter().map(|(name, _)| listed.iter().position(|word| word == name));
        assert!(positions.all(|at| at.is_some()), "{listed:?}");
        assert!(content.contains(&format!("{} are used", of_array.len())), "{content}");
        assert_eq!(COUNTERS[DROPS.start].0, "unknown_member");
        assert_eq!(COUNTERS[DROPS.end - 1].0, "not_participant");
    }
}
