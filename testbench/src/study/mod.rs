//! Reproduction of the paper's study, as far as one machine allows. It measures how the time of an iteration is spent,
//! the speed-up of the switch over a parameter server and a ring in synchronous and asynchronous training, and whether
//! training reaches the same return.
//!
//! Three parts are *real*: every packet and every sum, sent over shaped links between namespaces; the times measured by
//! [`split`]; and the training runs of [`convergence`]. The local computation of [`replay`] and [`asynchronous`] is
//! *replayed*: each worker sleeps for the duration of the computation, because this machine does not have a core for
//! each worker.

pub mod asynchronous;
pub mod convergence;
pub mod curves;
pub mod elements;
pub mod images;
pub mod paper;
pub mod replay;
pub mod split;
pub mod stopwatch;
pub mod tasks;
