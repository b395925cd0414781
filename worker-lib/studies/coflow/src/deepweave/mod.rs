//! Learned priorities: networks over jobs' graphs, a search that goes on from what they propose, and their training.
//!
//! | module | content |
//! |---|---|
//! | [`scene`] | what a network sees |
//! | [`net`] | the paper's network for jobs of a greatest size; a head for each coflow of jobs of any size |
//! | [`agent`] | the policy |
//! | [`remainder`], [`lookahead`] | what an order costs if nothing more arrives, and the search for a better one |
//! | [`episodes`] | workloads of a training |
//! | [`config`], [`training`] | imitation of the search and algorithm 1, with one or more workers, and its files |

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
