//! Syntax that names a card: `sim:PROGRAM` or `uio:DEVICE`, optionally followed by `,slots256`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::access::{Card, CardError, check_identity};
use crate::simulated::SimulatedCard;
use crate::uio::UioCard;

/// Suffix of a card with 256 slots.
const WIDE: &str = ",slots256";

/// A card, and how the host reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardSpec {
    /// How the host reaches the card.
    pub backend: Backend,
    /// Number of slots of the card: 128, or 256 in the build `slots256`.
    pub slots: u32,
}

/// How the host reaches a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The program at this path simulates the card.
    Simulated(PathBuf),
    /// The registers of a board are mapped from the UIO device at this path.
    Uio(PathBuf),
}

/// The text does not name a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sim:PROGRAM or uio:DEVICE, optionally followed by ,slots256")]
pub struct SpecError;

impl CardSpec {
    /// Opens the card, and checks that it is the accelerator.
    ///
    /// # Errors
    /// Fails if the program or the device cannot be opened, or if the registers ID and VERSION have other values.
    pub fn open(&self) -> Result<Box<dyn Card>, CardError> {
        let mut card: Box<dyn Card> = match &self.backend {
            Backend::Simulated(program) => Box::new(SimulatedCard::start(program)?),
            Backend::Uio(device) => Box::new(UioCard::open(device)?),
        };
        check_identity(card.as_mut())?;
        Ok(card)
    }
}

impl FromStr for CardSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, slots) = text.strip_suffix(WIDE).map_or((text, 128), |name| (name, 256));
        let (kind, path) = name.split_once(':').filter(|(_, path)| !path.is_empty()).ok_or(SpecError)?;
        let backend = match kind {
            "sim" => Backend::Simulated(path.into()),
            "uio" => Backend::Uio(path.into()),
            _ => return Err(SpecError),
        };
        Ok(Self { backend, slots })
    }
}

impl fmt::Display for CardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, path) = match &self.backend {
            Backend::Simulated(path) => ("sim", path),
            Backend::Uio(path) => ("uio", path),
        };
        write!(f, "{kind}:{}{}", path.display(), if self.slots == 256 { WIDE } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_card_parses_to_the_same_card() {
        for text in ["sim:/tmp/a:b", "uio:/dev/uio0", "uio:/dev/uio1,slots256", "sim:a,b"] {
            assert_eq!(text.parse::<CardSpec>().unwrap().to_string(), text);
        }
        for bad in ["", "sim:", "uio", "/dev/uio0", "pci:1", ",slots256", "sim:,slots256"] {
            assert_eq!(bad.parse::<CardSpec>(), Err(SpecError), "{bad}");
        }
    }
}
