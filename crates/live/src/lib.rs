//! The real clock: io_uring engine, buffers and targets, driving the same array and load.
