//! The counters of the card.

use crate::access::{Card, CardError};
use crate::registers::{COUNTER_NAMES, offset};

/// Registers that count, besides those of [`COUNTER_NAMES`], with the names of their counters.
const OTHERS: [(&str, u16); 4] = [
    ("frames_received", offset::PKTIN),
    ("frames_sent", offset::PKTOUT),
    ("stalled_cycles", offset::HAZARDS),
    ("requests_skipped", offset::SKIPPED),
];
/// Number of registers that count.
const COUNT: usize = OTHERS.len() + COUNTER_NAMES.len();
/// Positions of the drop reasons among all counters, in the order of [`CardCounters::all`].
const DROPS: std::ops::Range<usize> = OTHERS.len() + 5..OTHERS.len() + 16;

/// Counters of a card since the host began to read them.
///
/// The registers have 32 bits and wrap: at line rate, the number of frames received wraps after 72 s. The totals have
/// 64 bits, and are correct if [`Self::refresh`] is called more often than that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardCounters {
    registers: [u32; COUNT],
    totals: [u64; COUNT],
}

impl CardCounters {
    /// Returns counters that are all zero, whatever the card has counted so far.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn new(card: &mut dyn Card) -> Result<Self, CardError> {
        Ok(Self { registers: registers(card)?, ..Self::default() })
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
        OTHERS.into_iter().map(|(name, _)| name).chain(COUNTER_NAMES).zip(self.totals)
    }
}

fn registers(card: &mut dyn Card) -> Result<[u32; COUNT], CardError> {
    let words = (offset::COUNTERS..).step_by(4).take(COUNTER_NAMES.len());
    let offsets = OTHERS.into_iter().map(|(_, at)| at).chain(words);
    let mut values = [0; COUNT];
    for (value, at) in values.iter_mut().zip(offsets) {
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
        let mut positions = COUNTER_NAMES.iter().map(|name| listed.iter().position(|word| word == name));
        assert!(positions.all(|at| at.is_some()), "{listed:?}");
        assert!(content.contains(&format!("{} are used", COUNTER_NAMES.len())), "{content}");
        let drops: Vec<_> = CardCounters::default().drops().map(|(name, _)| name).collect();
        assert_eq!(drops.first(), Some(&"unknown_member"));
        assert_eq!(drops.last(), Some(&"not_participant"));
    }
}
