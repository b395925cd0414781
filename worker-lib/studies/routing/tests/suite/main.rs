//! Tests of packet routing, compiled into a single binary so that the dependencies are linked only once.

mod external;
mod routing;
