//! Learned packet routing in multi-stage networks: maximum-likelihood policy iteration (MLPI; Gao, Luo, Sun, "Packet
//! Routing Method for Multi-Stage Networks Based on Reinforcement Learning", J. UESTC 51(2), 2022), the heuristics
//! that it is compared with, stronger ones, and an exact lower bound.
//!
//! # The network
//! S stages of N switches, each with a queue for each of N classes (destinations). From each switch a link leads to
//! each switch of the next stage; it carries one packet a slot. A packet stays in its class: at the last stage the
//! queue of class j at switch i has an exit of its own, one packet a slot. The load is the sum of all arrival rates
//! over N^2, the links of a stage. A slot:
//!
//! 1. What is queued is counted: the metric of the paper's figures 2, 3, 6 and 7.
//! 2. Packets arrive at the first stage, Poisson.
//! 3. All packets for which there is a link are given one, from the queues as they are then: upstream stages first,
//!    then by switch; the heads of its queues by class, then further packets of each queue, for as long as a link is
//!    idle. A packet moves one hop in a slot.
//! 4. Queues of the last stage that were not empty in step 3 lose a packet.
//!
//! | module | content |
//! |---|---|
//! | [`network`] | shapes, queues, the order of decisions, what a slot does |
//! | [`rates`] | arrival rates and arrivals |
//! | [`bound`] | what no policy can fall below |
//! | [`policy`] | heuristics, edge colouring, greedy policies of values |
//! | [`measure`] | runs a policy: queues, delays, heat maps |
//! | [`value`] | what states are worth: a table of lengths, the paper's convolutional network |
//! | [`trajectory`] | slots that were simulated or used, discounted costs |
//! | [`config`], [`training`] | MLPI, Monte Carlo and temporal differences, with one or more workers, and their files |
//! | [`agent`] | one slot's routing as a service, in JSON lines |

pub mod agent;
pub mod bound;
pub mod config;
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
