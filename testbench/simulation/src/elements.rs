//! Element types of simulated jobs.

use iswitch_protocol::{ElementType, ElementTypes};
use serde::{Deserialize, Serialize};

use crate::checker::mix;

/// Element types of the contributions and the results of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Elements {
    /// 32 bits in both directions.
    #[default]
    F32,
    /// bfloat16 in both directions.
    Bf16,
    /// binary16 in both directions.
    F16,
    /// Contributions in bfloat16, results in 32 bits.
    Bf16WithWideResults,
    /// Contributions in binary16, results in 32 bits.
    F16WithWideResults,
}

/// Salt that is combined with the seed to draw the element types, so that this choice does not change the other random
/// numbers of a scenario.
const SALT: u64 = 0x656c_656d_656e_7473;

impl Elements {
    /// Returns the element types that `seed` determines. Half of all seeds give [`Elements::F32`]; each of the other
    /// variants has the same share of the remaining seeds.
    pub fn draw(seed: u64) -> Self {
        match mix(seed ^ SALT) % 8 {
            0 => Self::Bf16,
            1 => Self::F16,
            2 => Self::Bf16WithWideResults,
            3 => Self::F16WithWideResults,
            _ => Self::F32,
        }
    }

    /// Returns the types that a Join declares.
    pub fn types(self) -> ElementTypes {
        match self {
            Self::F32 => ElementTypes::F32,
            Self::Bf16 => ElementTypes::uniform(ElementType::Bf16),
            Self::F16 => ElementTypes::uniform(ElementType::F16),
            Self::Bf16WithWideResults => ElementTypes::with_wide_results(ElementType::Bf16),
            Self::F16WithWideResults => ElementTypes::with_wide_results(ElementType::F16),
        }
    }
}
