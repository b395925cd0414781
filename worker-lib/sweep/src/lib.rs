//! Learning curves of training runs, and robust statistics over runs. The programs `iswitch-sweep` and `iswitch-plot`
//! share this code.

pub mod curves;
pub mod statistics;
