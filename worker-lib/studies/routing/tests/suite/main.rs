//! Tests of packet routing, in one program so that they are linked only once.

mod external;
mod routing;
