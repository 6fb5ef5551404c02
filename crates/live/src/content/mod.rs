//! What is written, and what is expected back.

mod check;
mod report;
mod stamp;
mod verify;

pub use check::Verify;
pub(crate) use check::{ContentCheck, Knowledge, NotedWrite, Writers};
pub(crate) use report::not_compared;
pub use report::{ContentReport, Wrong, WrongKind};
pub(crate) use stamp::{seal, SectorContent, Stamper};
pub(crate) use verify::Verifier;
pub use verify::{Mismatch, VerifyReport};
