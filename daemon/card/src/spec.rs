//! Syntax that names a card: `sim:PROGRAM`, optionally followed by `,slots256`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::access::{Card, CardError, check_identity};
use crate::simulated::SimulatedCard;

/// Prefix of a simulated card.
const SIMULATED: &str = "sim:";
/// Suffix of a card with 256 slots.
const WIDE: &str = ",slots256";

/// A simulated card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardSpec {
    /// Path of the program that simulates the card.
    pub program: PathBuf,
    /// Number of slots of the card: 128, or 256 in the `slots256` build.
    pub slots: u32,
}

/// The text does not name a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sim:PROGRAM, optionally followed by ,slots256")]
pub struct SpecError;

impl CardSpec {
    /// Starts the program, and checks that it simulates the accelerator.
    ///
    /// # Errors
    /// Fails if the program cannot be started, or if the registers ID and VERSION have other values.
    pub fn open(&self) -> Result<Box<dyn Card>, CardError> {
        let mut card = SimulatedCard::start(&self.program)?;
        check_identity(&mut card)?;
        Ok(Box::new(card))
    }
}

impl FromStr for CardSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, slots) = text.strip_suffix(WIDE).map_or((text, 128), |name| (name, 256));
        let program = name.strip_prefix(SIMULATED).filter(|path| !path.is_empty()).ok_or(SpecError)?;
        Ok(Self { program: program.into(), slots })
    }
}

impl fmt::Display for CardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = if self.slots == 256 { WIDE } else { "" };
        write!(f, "{SIMULATED}{}{wide}", self.program.display())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_printed_card_parses_to_the_same_card() {
        for text in ["sim:/tmp/a:b", "sim:/tmp/a,slots256", "sim:a,b"] {
            assert_eq!(text.parse::<CardSpec>().unwrap().to_string(), text);
        }
        for bad in ["", "sim:", "sim", "/tmp/a", "pci:1", ",slots256", "sim:,slots256"] {
            assert_eq!(bad.parse::<CardSpec>(), Err(SpecError), "{bad}");
        }
    }

    #[test]
    fn a_program_that_is_no_card_is_refused() {
        let open = |program: &str| {
            let spec = CardSpec { program: Path::new(program).to_owned(), slots: 128 };
            spec.open().err().expect("no card").to_string()
        };
        assert!(open("/nonexistent/card").contains("No such file"));
        // It repeats the command, which begins with an R.
        assert_eq!(open("/bin/cat"), "the simulated card answered with code 0x52, expected V or F");
    }
}
