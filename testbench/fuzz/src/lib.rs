//! Fuzz targets of all crates, each a test in `tests/`; `docs/fuzzing.md` says how to run one.

// What a fuzzer builds links only with its run-time library, which comes with bolero.
use bolero as _;
