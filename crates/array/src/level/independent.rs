//! Separate volumes, at the root only: a request names its volume, so that nothing is ever asked of this level.

use super::{Compiled, Content, Level, Personality, Surroundings};
use crate::layout::{Node, NodeId};
use raidlab_types::Extent;

const NEVER_ASKED: &str = "a request names a volume below the root";

/// Volumes side by side.
#[derive(Debug, Clone)]
pub(crate) struct Independent;

pub(super) fn compile(around: &Surroundings<'_>) -> Compiled {
    Compiled { level: Level::Independent(Independent), capacity: around.smallest(), alignment: around.alignment }
}

impl Personality for Independent {
    fn parts(&self, _: &Node, _: Extent) -> impl Iterator<Item = (u32, Extent)> {
        std::iter::once_with(|| unreachable!("{NEVER_ASKED}"))
    }

    fn content(&self, _: &Node, _: u32, _: u64) -> Content {
        unreachable!("{NEVER_ASKED}")
    }

    fn for_each_share(&self, _: &Node, _: Extent, _: impl FnMut(NodeId, Extent)) {
        unreachable!("{NEVER_ASKED}")
    }
}
