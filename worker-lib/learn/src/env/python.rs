//! Which Python is asked for environments and libraries.

use std::path::PathBuf;

/// Names the Python to use.
pub(super) const VARIABLE: &str = "ISWITCH_PYTHON";

/// The Python that the environment variable `ISWITCH_PYTHON` names, or else `python3`.
pub(super) fn program() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    named.map_or_else(|| "python3".into(), PathBuf::from)
}
