//! Limit on the number of open files.

use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::limits::DESCRIPTORS_RESERVED;
use crate::server::CONNECTIONS_DEFAULT;

/// Raises the limit on open files as far as necessary and permitted, so that enough file descriptors are left for the
/// journal. Returns the number of connections that the limit allows, which is below `wanted` only if `wanted` is the
/// default.
///
/// # Errors
/// Fails if an explicitly requested number of connections does not fit.
pub(super) fn connections(wanted: usize) -> anyhow::Result<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (current, maximum) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX));
    let needed = wanted as u64 + DESCRIPTORS_RESERVED;
    let limit = needed.min(maximum).max(current);
    if limit > current {
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(maximum) })
            .with_context(|| format!("cannot raise the limit on open files from {current} to {limit}"))?;
    }
    let fits = fitting(wanted, limit)?;
    if fits < wanted {
        tracing::warn!(
            "connections-max is lowered from {wanted} to {fits}: the hard limit on open files is {maximum}, of which \
             {DESCRIPTORS_RESERVED} are reserved for the journal; raise the limit with `ulimit -Hn` or, under systemd, \
             with LimitNOFILE="
        );
    }
    Ok(fits)
}

/// Returns the number of connections for which a limit on open files leaves enough file descriptors.
fn fitting(wanted: usize, limit: u64) -> anyhow::Result<usize> {
    let most = limit.saturating_sub(DESCRIPTORS_RESERVED);
    let least = if wanted == CONNECTIONS_DEFAULT { 1 } else { wanted as u64 };
    if most < least {
        bail!(
            "connections-max is {wanted}, expected at most {most}: the hard limit on open files is {limit}, of which \
             {DESCRIPTORS_RESERVED} are reserved for the journal; raise the limit with `ulimit -Hn` or, under systemd, \
             with LimitNOFILE="
        );
    }
    Ok(wanted.min(usize::try_from(most).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_descriptors_are_reserved_for_the_journal() {
        assert_eq!(fitting(4096, u64::MAX).unwrap(), 4096);
        assert_eq!(fitting(4096, 4160).unwrap(), 4096);
        assert_eq!(fitting(4096, 1024).unwrap(), 960);
        assert_eq!(fitting(960, 1024).unwrap(), 960);
        let error = fitting(961, 1024).unwrap_err().to_string();
        assert!(error.starts_with("connections-max is 961, expected at most 960: "), "{error}");
        assert!(fitting(4096, 64).is_err());
    }
}
