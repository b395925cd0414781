//! Tests of placement, in one program so that they are linked only once.

mod external;
mod placement;
mod placement_agent;
mod placement_domains;
mod placement_files;
mod placement_learning;
mod placement_managers;
mod placement_table;
