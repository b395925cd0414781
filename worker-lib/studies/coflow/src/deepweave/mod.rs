//! Learned priorities: networks over job graphs, a search that starts from the orders that they propose, and their
//! training.
//!
//! | module | content |
//! |---|---|
//! | [`scene`] | input of a network: the coflows that are present, with their features |
//! | [`net`] | the paper's network for jobs of limited size; a network with a head per coflow for jobs of any size |
//! | [`agent`] | the policy |
//! | [`remainder`], [`lookahead`] | cost of an order if no more jobs arrive, and the search for a better order |
//! | [`episodes`] | training workloads |
//! | [`config`], [`training`] | imitation and the paper's algorithm 1, with one or more workers; checkpoints |

pub mod agent;
pub mod config;
pub mod episodes;
mod graph;
mod imitation;
pub mod lookahead;
pub mod net;
mod node_net;
mod paper_net;
mod reinforce;
pub mod remainder;
pub mod scene;
pub mod training;
