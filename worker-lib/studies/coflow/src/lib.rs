//! Learned coflow scheduling for jobs that are graphs of coflows: DeepWeave (Sun, Guo, Wang, Li, Lan, Hu, "DeepWeave:
//! Accelerating Job Completion Time with Deep Reinforcement Learning-based Coflow Scheduling", IJCAI 2020), and
//! baseline policies for comparison.
//!
//! # The model
//! The fabric has M ingress and M egress ports. Only the ports, and the links of racks if there are any, can be
//! congested. A coflow is a set of flows from ingress to egress ports; it is complete when all its flows are complete.
//! A job is a directed acyclic graph of coflows. A coflow starts after the coflows that it depends on are complete; in
//! rare cases, a dependency delays only the completion of a coflow, not its start. Flows are fluid, and each has its
//! own rate: no flow waits while both of its ports, and the links that it uses, have free capacity. With
//! [`simulation::Rates::Blocking`], each coflow has a single rate for all its flows.
//!
//! | module | content |
//! |---|---|
//! | [`workload`] | coflows, jobs, and checks of their graphs |
//! | [`collective`] | traffic of all-reduce and all-to-all |
//! | [`bound`] | lower bounds on the mean job completion time under any policy |
//! | [`search`] | local search for the priorities of a known batch |
//! | [`simulation`] | simulation of a fabric over time |
//! | [`measure`] | metrics of a run |
//! | [`policy`] | policies that do not learn: Fair, FIFO, Varys, Sincronia, Aalo, and job-level policies |
//! | [`deepweave`] | learned priorities |
//! | [`generate`] | random jobs built from shapes and coflows, and synthetic traces |
//! | [`inputs`] | coflows, shapes of job graphs, and jobs, read from files or generated |
//! | [`agent`] | a service that answers requests from a cluster's scheduler |
//! | [`environment`] | the simulation as an environment that asks an agent for the order of coflows |
//! | [`trace`] | files: FB2010 benchmark, TPC-H query shapes, Alibaba's 2018 cluster trace, jobs as JSON, fabrics |

pub mod agent;
pub mod bound;
pub mod collective;
pub mod deepweave;
pub mod environment;
pub mod generate;
pub mod inputs;
pub mod measure;
pub mod policy;
pub mod search;
pub mod simulation;
pub mod trace;
pub mod workload;

pub use iswitch_study::StudyError;
