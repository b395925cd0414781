//! Tests of placement, compiled into a single binary so that the dependencies are linked only once.

mod external;
mod placement;
mod placement_agent;
mod placement_domains;
mod placement_files;
mod placement_learning;
mod placement_managers;
mod placement_table;
