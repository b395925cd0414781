//! Fuzz targets of all crates, each a test in `tests/`; `docs/fuzzing.md` explains how to run them.

// A build for a fuzzer links only if it includes the fuzzer's run-time library, which comes with bolero.
use bolero as _;
