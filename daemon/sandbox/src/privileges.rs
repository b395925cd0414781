//! Capabilities and `no_new_privs`.

use rustix::io::Errno;
use rustix::process::{parent_process_death_signal, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::SandboxError;

/// Permanently drops all capabilities of the process, which must have only one thread.
///
/// `change_user` is called after the bounding set has been emptied, while the process still has its other capabilities.
/// The parent-death signal of the process is preserved.
///
/// # Errors
/// Fails if the process would keep a capability, or `change_user` fails.
pub fn drop_privileges<E: From<SandboxError>>(change_user: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    // The kernel clears the parent-death signal when the user changes.
    let death_signal = parent_process_death_signal().map_err(failed("read the parent-death signal"))?;
    empty_bounding_set();
    clear_ambient_capability_set().map_err(failed("clear the ambient capabilities"))?;
    change_user()?;
    // A system-call filter of systemd may forbid this call, which a process without capabilities does not need.
    if has_capabilities()? {
        let none = CapabilitySet::empty();
        let no_capabilities = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, no_capabilities).map_err(failed("drop the capabilities"))?;
    }
    set_no_new_privs(true).map_err(failed("set no_new_privs"))?;
    set_parent_process_death_signal(death_signal).map_err(failed("restore the parent-death signal"))?;
    if has_capabilities()? {
        return Err(failed("drop the capabilities")(Errno::PERM).into());
    }
    Ok(())
}

fn has_capabilities() -> Result<bool, SandboxError> {
    let CapabilitySets { effective, permitted, inheritable } =
        capabilities(None).map_err(failed("read the capabilities"))?;
    Ok(!(effective | permitted | inheritable).is_empty())
}

fn failed(call: &'static str) -> impl FnOnce(Errno) -> SandboxError {
    SandboxError::of(call)
}

/// Empties the bounding set. This fails without `CAP_SETPCAP`, which is harmless: `no_new_privs` prevents programs
/// that the process starts from gaining capabilities.
fn empty_bounding_set() {
    for capability in CapabilitySet::all().iter() {
        if capability_is_in_bounding_set(capability).unwrap_or(false)
            && let Err(error) = remove_capability_from_bounding_set(capability)
        {
            tracing::debug!(%error, "cannot empty the capability bounding set");
            return;
        }
    }
}
