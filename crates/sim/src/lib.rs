//! The virtual clock: event queue, stations, and the run loop over array, load and device.
