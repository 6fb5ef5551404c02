//! What a client asks of an array.

use crate::Extent;
use serde::{Deserialize, Serialize};

/// The client's own name for a request; returned unchanged when it completes.
pub type RequestTag = u64;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Bytes from the array to the client.
    Read,
    /// Bytes from the client to the array.
    Write,
    /// Everything acknowledged before becomes durable.
    Flush,
}

/// One request to an array: `{volume, extent}`, the volume being 0 unless the root is `independent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// The client's name for it.
    pub tag: RequestTag,
    /// Which child of an `independent` root; 0 otherwise.
    pub volume: u32,
    /// Read, write or flush.
    pub kind: RequestKind,
    /// Sectors of the volume; ignored by a flush.
    pub extent: Extent,
    /// A write that must be durable before it completes.
    pub force_unit_access: bool,
}

/// Why a request could not be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RequestError {
    /// More members are missing (or unreadable at this place) than the level bears.
    #[error("node {node} of the tree has lost more members than it bears{}", at(*.extent))]
    BeyondTolerance {
        /// Index of the node in the tree, in depth-first order.
        node: u32,
        /// Where on that node, if the loss is local (a media error).
        extent: Option<Extent>,
    },
    /// The request does not lie within the volume.
    #[error("request {extent} lies outside volume {volume} of {capacity_sectors} sectors")]
    OutOfRange {
        /// Volume asked for.
        volume: u32,
        /// Extent asked for.
        extent: Extent,
        /// What the volume holds; 0 where there is no such volume.
        capacity_sectors: u64,
    },
}

fn at(extent: Option<Extent>) -> String {
    extent.map_or(String::new(), |e| format!(" at sectors {e}"))
}
