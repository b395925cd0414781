//! The host name of this machine.

const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Returns the host name of this machine, or of the container in which the process runs. Returns `None` if the host
/// name is not known.
pub fn host_name() -> Option<String> {
    let name = std::fs::read_to_string(HOST_NAME).ok()?;
    let name = name.trim();
    // Linux reports this name if no host name has been set.
    (!name.is_empty() && name != "(none)").then(|| name.to_owned())
}
