//! Experience replay between thousands of actors and their learners.
pub mod limits;
pub mod table;
