//! What went in and what came out: so that nothing is lost, and nothing counted twice, without anybody's word for it.
//!
//! Purpose: requests and member operations are counted where they begin and where they end, apart from the recorder and
//! from the members' counts, over the whole of the load and not only while measuring.

use serde::Serialize;

/// Requests or operations since the load began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Account {
    /// Begun.
    pub submitted: u64,
    /// Ended well.
    pub completed: u64,
    /// Ended otherwise.
    pub failed: u64,
}

/// The accounts of a run. After a run that ended by itself each balances: submitted = completed + failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Accounts {
    /// Clients' requests.
    pub requests: Account,
    /// Operations on members.
    pub operations: Account,
    /// Ends of requests that had not begun, or had ended.
    pub unknown: u64,
}

impl Account {
    /// One has ended.
    #[inline]
    pub(super) fn end(&mut self, ok: bool) {
        *(if ok { &mut self.completed } else { &mut self.failed }) += 1;
    }
}
