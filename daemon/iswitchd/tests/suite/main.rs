//! Tests of the daemon and of the embedded switch, one program so that they are linked once.

#[cfg(feature = "daemon")]
mod command_line;
mod embedded;
