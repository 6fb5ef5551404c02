//! A host that issues the operations of a request one after the other, where issuing costs time.

use super::{Observer, Sim};
use crate::walks::Continuation;
use raidlab_load::Generator;
use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::Operation;
use std::collections::VecDeque;

/// Operations of one request that wait for the one before them to be issued.
#[derive(Debug, Default)]
pub(super) struct Issuer {
    /// Requests that had this tag so far; what an earlier one's host work leaves behind is not this one's business.
    generation: u32,
    busy: bool,
    waiting: VecDeque<Operation>,
}

impl<L: Generator, O: Observer> Sim<'_, L, O> {
    /// Issues the operation now if its request is not busy issuing another, else after those.
    pub(super) fn issue_in_turn(&mut self, op: Operation) {
        let tag = usize_from(op.tag);
        if self.issuers[tag].busy {
            self.issuers[tag].waiting.push_back(op);
            return;
        }
        self.issuers[tag].busy = true;
        self.send(op);
        let then = Continuation::Next(u32_from(tag), self.issuers[tag].generation);
        let issued = self.walks.as_mut().and_then(|walks| walks.work(self.now, self.issue_cost, then));
        debug_assert!(issued.is_none(), "issuing costs time");
    }

    pub(super) fn new_issuer(&mut self, tag: usize) {
        if tag >= self.issuers.len() {
            self.issuers.resize_with(tag + 1, Issuer::default);
        }
        self.issuers[tag].generation = self.issuers[tag].generation.wrapping_add(1);
        self.issuers[tag].busy = false;
    }

    pub(super) fn next_in_turn(&mut self, tag: u32, generation: u32) {
        let issuer = &mut self.issuers[tag as usize];
        if issuer.generation != generation {
            return;
        }
        issuer.busy = false;
        if let Some(op) = issuer.waiting.pop_front() {
            self.issue_in_turn(op);
        }
    }
}
