//! The Python door: raidlab._core.
