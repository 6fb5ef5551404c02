//! Load control: finding the depth at which a response time is held.
//!
//! Purpose: two answers to "how much load at a 90th percentile of 200 ms?". [`search`] runs one measurement a depth and
//! interpolates; [`adjust`] moves the depth while the run goes on, as the Berkeley study did.
//!
//! Invariant: both are sans-IO: figures go in, depths come out.

pub mod adjust;
pub mod search;
