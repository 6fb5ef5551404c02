//! What an array asks of one member device.

use crate::{Extent, RequestTag};
use serde::{Deserialize, Serialize};

/// A leaf of the tree, numbered from 0 in depth-first order: the index of a member device.
pub type LeafId = u32;

/// Names one operation while it is in flight; unique among those in flight, reused afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// What a device operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    /// Bytes from the member.
    Read,
    /// Bytes to the member.
    Write,
    /// Make earlier writes durable.
    Flush,
    /// The content is no longer wanted.
    Discard,
    /// Zeroes, without moving bytes.
    WriteZeroes,
}

/// One operation for one member device.
///
/// `extent` already includes the leaf's data offset: it is what the device sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Name to be given back when it is done.
    pub id: OpId,
    /// The client's request it serves.
    pub tag: RequestTag,
    /// Which member.
    pub leaf: LeafId,
    /// What to do.
    pub kind: OpKind,
    /// Sectors of the device.
    pub extent: Extent,
    /// Must be durable when it completes.
    pub force_unit_access: bool,
    /// The other half of a read-modify-write of this very extent on this very member: a read names the write that will
    /// follow it, that write names the read it follows. The device's policy says how the pair is priced.
    pub pair_with: Option<OpId>,
}

/// How an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OpError {
    /// These sectors cannot be read; the member is otherwise well.
    #[error("unreadable sectors {0}")]
    Media(Extent),
    /// The member answers no more.
    #[error("the member is gone")]
    MemberGone,
}
