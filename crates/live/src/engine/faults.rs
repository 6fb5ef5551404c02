//! Members that break on purpose.
//!
//! Purpose: the same failure at the same operation, so that what an array does about it can be tested and measured on
//! real members.

use crate::config::{Fault, FaultKind};
use raidlab_types::{LeafId, OpError, OpKind, Operation};

/// What a fault does to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultDecision {
    /// It is carried out.
    Serve,
    /// It fails.
    Fail(OpError),
    /// It is carried out, and its member is taken out of the array.
    TakeOut(LeafId),
}

/// The faults of a run, and how many operations each member has been given.
#[derive(Debug)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    served: Vec<u64>,
    armed: bool,
}

impl Faults {
    pub(super) fn new(faults: &[Fault], leaves: usize) -> Faults {
        Faults { faults: faults.to_vec(), served: vec![0; leaves], armed: false }
    }

    /// From here on operations count; the writing before a verifying run must not trip a fault.
    pub(super) fn arm(&mut self, armed: bool) {
        self.armed = armed && !self.faults.is_empty();
    }

    /// What becomes of `operation`.
    #[inline]
    pub(super) fn judge(&mut self, operation: &Operation) -> FaultDecision {
        if !self.armed {
            return FaultDecision::Serve;
        }
        self.judge_armed(operation)
    }

    fn judge_armed(&mut self, operation: &Operation) -> FaultDecision {
        let served = &mut self.served[operation.leaf as usize];
        *served += 1;
        let served = *served;
        let mine = |f: &&Fault| f.leaf == operation.leaf && served > f.after_operations;
        for fault in self.faults.iter().filter(mine) {
            match fault.kind {
                FaultKind::Gone => return FaultDecision::Fail(OpError::MemberGone),
                FaultKind::Media { every } if operation.kind == OpKind::Read && served.is_multiple_of(every.max(1)) => {
                    return FaultDecision::Fail(OpError::Media(operation.extent));
                }
                FaultKind::TakenOut if served == fault.after_operations + 1 => {
                    return FaultDecision::TakeOut(operation.leaf)
                }
                _ => {}
            }
        }
        FaultDecision::Serve
    }
}
