//! Tests of coflow scheduling, built as one program so that they are linked only once.

mod agent;
mod by_hand;
mod coflow;
mod coflow_learning;
mod external;
mod fabrics;
mod flow_level;
mod racks;
mod reference;
mod uniform;
