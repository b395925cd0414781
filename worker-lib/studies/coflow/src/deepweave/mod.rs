//! Learned priorities: networks over job graphs, a search that starts from the order that a network proposes, and the
//! training of the networks.
//!
//! | module | content |
//! |---|---|
//! | [`scene`] | input of a network: the incomplete coflows, with their features |
//! | [`net`] | the paper's network for jobs of limited size; a network with a head per coflow for jobs of any size |
//! | [`agent`] | the policy |
//! | [`remainder`], [`lookahead`] | cost of an order if no more jobs arrive, and the search for a better order |
//! | [`episodes`] | training workloads |
//! | [`config`], [`training`] | hyper-parameters; imitation, and the paper's algorithm 1; checkpoints |

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
