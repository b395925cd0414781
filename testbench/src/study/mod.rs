//! The paper's study, as far as one machine carries it: where the time of an iteration goes, what the switch is worth
//! beside a parameter server and a ring, synchronous and asynchronous, and that training comes as far.
//!
//! What is *real*: every packet and every sum, over shaped links between namespaces; the times of [`split`]; the
//! training of [`convergence`]. What is *replayed*: the local computation of [`replay`] and [`asynchronous`], for which
//! workers sleep, since four workers do not find a core each here.

pub mod asynchronous;
pub mod convergence;
pub mod curves;
pub mod images;
pub mod paper;
pub mod replay;
pub mod split;
pub mod stopwatch;
pub mod tasks;
