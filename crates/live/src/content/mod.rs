//! What is written, and what is expected back.

mod stamp;
mod verify;

pub(crate) use stamp::Stamper;
pub(crate) use verify::Verifier;
pub use verify::{Mismatch, VerifyReport};
