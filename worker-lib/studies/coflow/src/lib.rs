//! Learned coflow scheduling for jobs that are graphs of coflows: DeepWeave (Sun, Guo, Wang, Li, Lan, Hu, "DeepWeave:
//! Accelerating Job Completion Time with Deep Reinforcement Learning-based Coflow Scheduling", IJCAI 2020), and the
//! policies that a researcher would compare it with.
//!
//! # The model
//! A fabric of M ingress and M egress ports, all of the same capacity; only ports congest. A coflow is a set of flows
//! from ingress to egress ports, which is over when its last flow is. A job is a directed acyclic graph of coflows: one
//! may start after others are complete, and (rarely) not be complete before others. Flows are fluid; rates change when
//! a coflow arrives or ends.
//!
//! | module | content |
//! |---|---|
//! | [`workload`] | coflows, jobs, what is wrong with a graph |
//! | [`bound`] | what no policy can fall below |
//! | [`search`] | priorities that are searched for a known batch |
//! | [`simulation`] | a fabric over time |
//! | [`measure`] | what a run came to |
//! | [`policy`] | priorities: Fair, FIFO, Varys, Sincronia, Aalo, and those that look at jobs |
//! | [`deepweave`] | priorities that are learnt |
//! | [`generate`] | jobs that are drawn from shapes and coflows, synthetic traces |
//! | [`trace`] | files: the FB2010 benchmark, shapes of TPC-H queries, Alibaba's jobs of 2018 |

pub mod bound;
pub mod deepweave;
pub mod generate;
pub mod measure;
pub mod policy;
pub mod search;
pub mod simulation;
pub mod trace;
pub mod workload;

pub use iswitch_study::StudyError;
