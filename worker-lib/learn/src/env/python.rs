//! Choice of the Python interpreter for environments and libraries.

use std::path::PathBuf;

/// Environment variable that names the interpreter.
pub(super) const VARIABLE: &str = "ISWITCH_PYTHON";

/// Returns the interpreter that the environment variable `ISWITCH_PYTHON` names, or `python3` if the variable is not
/// set.
pub(super) fn program() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    named.map_or_else(|| "python3".into(), PathBuf::from)
}
