//! Learned packet routing in multi-stage networks: maximum-likelihood policy iteration (MLPI; Gao, Luo, Sun, "Packet
//! Routing Method for Multi-Stage Networks Based on Reinforcement Learning", J. UESTC 51(2), 2022), the heuristics
//! with which the paper compares it, stronger heuristics, and an exact lower bound.
//!
//! # The network
//! The network has S stages of N switches. Each switch has one queue for each of N classes (destinations). One link
//! leads from each switch to each switch of the next stage and carries one packet per slot. The class of a packet never
//! changes. At the last stage, the queue of class j at switch i has a separate exit, which releases one packet per
//! slot. The load is the sum of all arrival rates divided by N^2, the number of links between two stages. A slot has
//! four steps:
//!
//! 1. The queued packets are counted. This is the metric of the paper's figures 2, 3, 6 and 7.
//! 2. Packets arrive at the first stage (Poisson arrivals).
//! 3. Packets are assigned to links, based on the queue lengths at this moment. The assignment proceeds by stage
//!    (upstream first), switch and class. At each switch, it first serves the heads of the queues, then further packets
//!    as long as a link is idle. A packet moves at most one hop per slot.
//! 4. Each queue of the last stage that held a packet in step 3 releases one packet.
//!
//! | module | content |
//! |---|---|
//! | [`network`] | shapes, queues, the order of decisions, the end of a slot |
//! | [`rates`] | arrival rates and arrivals |
//! | [`bound`] | lower bound on the number of queued packets under any policy |
//! | [`policy`] | heuristics, edge colouring, policies that are greedy with respect to a value function |
//! | [`measure`] | runs of a policy: queues, delays, heat maps |
//! | [`value`] | value functions: linear in counts of queue lengths, and the paper's convolutional network |
//! | [`trajectory`] | records of slots, discounted costs |
//! | [`config`], [`training`] | training with MLPI, Monte Carlo or temporal difference; checkpoints |
//! | [`agent`] | routing agent for one slot at a time, in JSON lines |
//! | [`environment`] | environment in which a user-supplied agent chooses the link of each packet |

pub mod agent;
pub mod bound;
pub mod config;
pub mod environment;
mod fit;
mod lockstep;
pub mod measure;
mod model;
pub mod network;
mod online;
pub mod policy;
pub mod rates;
pub mod training;
pub mod trajectory;
pub mod value;

pub use iswitch_study::StudyError;
