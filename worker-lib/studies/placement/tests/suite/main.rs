//! Tests of placement, one program so that they are linked once.

mod placement;
mod placement_files;
mod placement_learning;
mod placement_table;
