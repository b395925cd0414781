//! Fuzz targets of all crates, each a test in `tests/`; `docs/fuzzing.md` says how to run one.

// A build for a fuzzer links only if it includes the fuzzer's run-time library, which comes with bolero.
use bolero as _;
