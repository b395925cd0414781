//! Tests of routing, one program so that they are linked once.

mod routing;
