//! Switch limits that a refusal names.

use core::fmt;

/// Switch limit that is the reason for refusing a Join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Limit {
    /// Number of jobs on the switch.
    Jobs = 1,
    /// Number of jobs on a switch with a parent: each job needs its own port to the parent.
    UplinkJobs = 2,
    /// Number of jobs without a key, on a switch that holds keys.
    KeylessJobs = 3,
    /// Number of jobs of one IPv4 address.
    JobsPerSource = 4,
    /// Memory for sums, in bytes.
    Memory = 5,
    /// Memory for the sums of one job, in bytes.
    JobMemory = 6,
    /// Memory for the sums of jobs without a key, on a switch that holds keys, in bytes.
    KeylessMemory = 7,
    /// Number of segments, in all jobs together, whose state the switch can keep.
    Slots = 8,
    /// The switch is about to stop, so no further job may begin; the value is 0.
    Draining = 9,
    /// Number of members of one job.
    Members = 10,
}

impl Limit {
    /// All limits, in the order of their codes.
    pub const ALL: [Self; 10] = [
        Self::Jobs,
        Self::UplinkJobs,
        Self::KeylessJobs,
        Self::JobsPerSource,
        Self::Memory,
        Self::JobMemory,
        Self::KeylessMemory,
        Self::Slots,
        Self::Draining,
        Self::Members,
    ];

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Returns the name that status output, logs and metrics use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::UplinkJobs => "uplink_jobs",
            Self::KeylessJobs => "keyless_jobs",
            Self::JobsPerSource => "jobs_per_source",
            Self::Memory => "memory_bytes",
            Self::JobMemory => "job_memory_bytes",
            Self::KeylessMemory => "keyless_memory_bytes",
            Self::Slots => "slots",
            Self::Draining => "draining",
            Self::Members => "members",
        }
    }

    /// Returns the option of iswitchd that raises the limit, or `None` if the limit is fixed.
    pub const fn option(self) -> Option<&'static str> {
        match self {
            Self::UplinkJobs => Some("--uplink-jobs"),
            Self::JobsPerSource => Some("--max-jobs-per-source"),
            Self::Memory | Self::KeylessMemory | Self::Slots => Some("--memory-mib"),
            Self::JobMemory => Some("--job-memory-mib"),
            Self::Jobs | Self::KeylessJobs | Self::Draining | Self::Members => None,
        }
    }
}

/// A switch limit that a Join would exceed, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exceeded {
    /// The limit.
    pub limit: Limit,
    /// Value of the limit: a count or a number of bytes, at most 56 bits long.
    pub value: u64,
}

/// Number of bits of the value on the wire.
const VALUE_BITS: u32 = 56;

impl Exceeded {
    /// Encodes the limit for the `history` field of a refusal (requirement C-12).
    pub const fn to_wire(self) -> u64 {
        let max = (1 << VALUE_BITS) - 1;
        let value = if self.value > max { max } else { self.value };
        (self.limit as u64) << VALUE_BITS | value
    }

    /// Decodes the limit from the `history` field of a refusal. Returns `None` if the switch names no known limit.
    pub fn from_wire(history: u64) -> Option<Self> {
        let limit = Limit::from_code((history >> VALUE_BITS) as u8)?;
        Some(Self { limit, value: history & ((1 << VALUE_BITS) - 1) })
    }
}

/// Number of bytes, formatted in the largest binary unit that divides it.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

impl fmt::Display for Exceeded {
    /// States the limit, its value, and the option that raises it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, value } = *self;
        match limit {
            Limit::Jobs => write!(f, "the switch can hold {value} jobs"),
            Limit::UplinkJobs => write!(f, "the switch can hold {value} jobs that a parent switch sums"),
            Limit::KeylessJobs => {
                write!(
                    f,
                    "the switch can hold {value} jobs without a key and reserves the others for jobs with a key"
                )
            }
            Limit::JobsPerSource => write!(f, "an address may have {value} jobs"),
            Limit::Memory => write!(f, "the switch has {} of memory for sums", Bytes(value)),
            Limit::JobMemory => write!(f, "a job may take {} of memory for sums", Bytes(value)),
            Limit::KeylessMemory => {
                write!(f, "jobs without a key may take {} of the memory for sums", Bytes(value))
            }
            Limit::Slots => write!(f, "the switch can keep the state of {value} segments"),
            Limit::Draining => f.write_str("the switch is about to stop and accepts no further jobs"),
            Limit::Members => write!(f, "a job may have {value} members"),
        }?;
        match limit.option() {
            Some(option) => write!(f, " (iswitchd {option})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn the_wire_carries_each_limit_with_its_value() {
        for (at, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, at + 1);
            for value in [0, 64, 1 << 40] {
                let exceeded = Exceeded { limit, value };
                assert_eq!(Exceeded::from_wire(exceeded.to_wire()), Some(exceeded));
            }
        }
        let largest = Exceeded { limit: Limit::Memory, value: u64::MAX }.to_wire();
        assert_eq!(Exceeded::from_wire(largest).map(|it| it.value), Some(u64::MAX >> 8));
        // Older switches send zero, and newer switches may name limits that this version does not know.
        assert_eq!((Exceeded::from_wire(0), Exceeded::from_wire(200 << VALUE_BITS)), (None, None));
    }

    #[test]
    fn the_text_names_the_value_and_the_option() {
        let text = |limit, value| Exceeded { limit, value }.to_string();
        assert_eq!(
            text(Limit::JobsPerSource, 32),
            "an address may have 32 jobs (iswitchd --max-jobs-per-source)"
        );
        assert_eq!(
            text(Limit::Memory, 256 << 20),
            "the switch has 256 MiB of memory for sums (iswitchd --memory-mib)"
        );
        assert_eq!(
            text(Limit::JobMemory, 3 << 10),
            "a job may take 3 KiB of memory for sums (iswitchd --job-memory-mib)"
        );
        assert_eq!(text(Limit::Jobs, 64), "the switch can hold 64 jobs");
    }
}
