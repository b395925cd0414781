//! Checks that the machine can provide the memory that the configuration requests. The core allocates all of it at
//! start-up. If the allocation failed, the daemon would abort without naming the setting.

use std::fs;

const MIB: u64 = 1 << 20;
const MEMINFO: &str = "/proc/meminfo";

/// Reason why the memory requested with `memory_mib` is not available.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The request exceeds the memory of the machine.
    #[error(
        "memory_mib is {value_mib}, expected at most {most_mib}: with this value the switch allocates {needed_mib} \
         MiB, and this machine has {total_mib} MiB of memory and swap"
    )]
    Machine {
        /// Value of the setting, in MiB.
        value_mib: u64,
        /// Largest value for which the machine has enough memory, in MiB.
        most_mib: u64,
        /// Total memory that the switch would allocate, in MiB.
        needed_mib: u64,
        /// Memory and swap of the machine, in MiB.
        total_mib: u64,
    },
    /// The system does not let this process allocate the memory.
    #[error(
        "memory_mib is {value_mib}: with this value the switch allocates {needed_mib} MiB, which is more than the \
         system allows this process to allocate; set a smaller --memory-mib, or raise the limit (ulimit -v, \
         vm.overcommit_memory)"
    )]
    Process {
        /// Value of the setting, in MiB.
        value_mib: u64,
        /// Total memory that the switch would allocate, in MiB.
        needed_mib: u64,
    },
}

/// Checks that the memory that the core will allocate is available.
///
/// # Errors
/// Fails if the machine has less memory than the core needs, or if the process is not permitted to allocate it.
pub fn check(config: &iswitch_switch::Config) -> Result<(), MemoryError> {
    let total_bytes = fs::read_to_string(MEMINFO).ok().and_then(|text| total_bytes(&text));
    check_with(config.memory_bytes, total_bytes.unwrap_or(u64::MAX))
}

fn check_with(memory_bytes: usize, total_bytes: u64) -> Result<(), MemoryError> {
    let needed_bytes = iswitch_switch::start_len_bytes(memory_bytes);
    let value_mib = memory_bytes as u64 / MIB;
    let needed_mib = needed_bytes as u64 / MIB;
    if needed_bytes as u64 > total_bytes {
        // The memory needed is proportional to the value.
        let most_mib = u128::from(value_mib) * u128::from(total_bytes) / needed_bytes as u128;
        let (most_mib, total_mib) = (most_mib as u64, total_bytes / MIB);
        return Err(MemoryError::Machine { value_mib, most_mib, needed_mib, total_mib });
    }
    // The allocation is freed immediately and its pages are never touched, so it costs nothing.
    let outcome = Vec::<u8>::new().try_reserve_exact(needed_bytes);
    outcome.map_err(|_| MemoryError::Process { value_mib, needed_mib })
}

/// Returns the sum of memory and swap, in bytes, from the text of `/proc/meminfo`.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let kib = |field: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some((kib("MemTotal")? + kib("SwapTotal").unwrap_or(0)) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_beyond_the_memory_of_the_machine_is_refused_with_the_limit() {
        let error = check_with(1 << 40, 1 << 30).unwrap_err();
        let MemoryError::Machine { value_mib, most_mib, needed_mib, total_mib } = error else {
            panic!("{error}")
        };
        assert_eq!((value_mib, total_mib), (1 << 20, 1 << 10));
        assert!(needed_mib > value_mib && most_mib < total_mib, "{error}");
        assert!(error.to_string().starts_with("memory_mib is 1048576, expected at most "), "{error}");
        // The value that the error suggests is accepted.
        assert_eq!(check_with((most_mib * MIB) as usize, 1 << 30), Ok(()));
    }

    #[test]
    fn a_size_beyond_the_address_space_is_refused() {
        let error = check_with(1 << 50, u64::MAX).unwrap_err();
        assert!(matches!(error, MemoryError::Process { value_mib: 0x4000_0000, .. }), "{error}");
    }

    #[test]
    fn the_memory_size_of_the_machine_is_read() {
        let text = fs::read_to_string(MEMINFO).unwrap();
        assert!(total_bytes(&text).is_some_and(|bytes| bytes > MIB));
        let text = "MemTotal:       24683864 kB\nMemFree: 5 kB\nSwapTotal:        1024 kB\n";
        assert_eq!(total_bytes(text), Some((24_683_864 + 1024) << 10));
        assert_eq!(total_bytes("nonsense"), None);
    }
}
