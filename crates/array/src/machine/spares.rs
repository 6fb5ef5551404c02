//! Distributed spares: a lost member is rebuilt into spare space on all others.
//!
//! A spare is filled as a member is rebuilt, as a leaf that has no device, and the member stands in it from then on. A new
//! member in its place is filled from there, while what is written goes to both; once that is whole, the spare is free.
//!
//! Invariant: a spare is not taken while a window may have been planned by which another member stood in it.

use super::{Array, Window, WindowPhase};
use crate::throttle::RebuildThrottle;
use raidlab_types::{Instant, Lba, LeafId, RequestError};

impl Array {
    /// Begins to rebuild a member that is missing or has failed into a distributed spare, at the pace of `throttle`, from the
    /// next [`Array::handle_time`] on. Its end comes as [`Event::MemberRebuilt`](super::Event::MemberRebuilt).
    ///
    /// # Errors
    /// When it has no spare ([`Array::has_spare_for`]).
    pub fn spare_member(&mut self, now: Instant, leaf: LeafId, throttle: RebuildThrottle) -> Result<(), RequestError> {
        let Some((number, (above, _))) = self.free_spare(leaf).zip(self.source_of(leaf)) else {
            return Err(RequestError::BeyondTolerance { node: self.layout.volume_node(0), extent: None });
        };
        (self.now, self.throttle) = (now, throttle);
        self.views.take_spare(&self.layout, leaf, number);
        self.epoch = self.epoch.wrapping_add(1);
        self.begin_rebuild(&above);
        self.next_work_at = Some(now);
        Ok(())
    }

    /// Whether a member is gone for which its level has a distributed spare that is free. One that was given back is not
    /// before all is done that began before.
    pub fn has_spare_for(&self, leaf: LeafId) -> bool {
        self.free_spare(leaf).is_some()
    }

    /// The number among its level's of the distributed spare in which a member stands, and up to which sector it does.
    pub fn spare_of(&self, leaf: LeafId) -> Option<(u32, Lba)> {
        self.views.spare_of(&self.layout, leaf)
    }

    /// The number of that spare.
    fn free_spare(&self, leaf: LeafId) -> Option<u32> {
        let view = self.views.leaf(leaf);
        if view.writes() || view.spare.is_some() {
            return None;
        }
        let (above, _) = self.source_of(leaf)?;
        let spares = self.layout.node(above[0].0).spares.clone();
        let (free, _) = (0..).zip(spares).find(|&(_, spare)| !self.views.leaf(spare).writes())?;
        let since_freed = self.epoch.wrapping_sub(self.spares_freed);
        let is_over =
            |window: &Window| window.phase == WindowPhase::Idle || self.epoch.wrapping_sub(window.epoch) <= since_freed;
        self.windows.iter().all(is_over).then_some(free)
    }
}
