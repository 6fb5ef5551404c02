//! Whole files: opening and reading them through a file system, one after another, by one reader or many.
//!
//! Purpose: the question of file retrieval: how long does a program wait for a file, and how much longer when others read at
//! the same time? [`plan`] says which files there are and who reads them, for both clocks. On the virtual clock
//! [`FileLoad`] stands for readers, host and file system: it asks an array for what a file needs, block by named block.
//!
//! Code map: `spec` the words of a cell, `plan` sizes, lists and sequences, `layout` where files lie, `access` what a file
//! needs, `load` the readers and what the host keeps in memory, `record` what came of it besides the times, which a
//! [`crate::Recorder`] keeps.
//!
//! Invariants:
//! - No clock and no file: time is an argument. Randomness is a function of the seed.
//! - A reader does one thing at a time: it works, or waits for one access; only clusters asked for ahead are on their way
//!   besides.
//!
//! Reference: S. Hauser, L. Berman, G. Thoma, *Is the bang worth the buck? A RAID performance study*, 1996.

pub mod access;
pub mod layout;
mod load;
pub mod plan;
mod record;
mod spec;

pub use access::AccessName;
pub use load::FileLoad;
pub use record::{AccessTotals, FilesRecord, SizeTotals};
pub use spec::{FileSystemSpec, FilesSpec, Numbers, Order};
