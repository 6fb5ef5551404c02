//! Constructors of trees by their common names.

use super::{Rotation, Tree};

/// Names that [`Tree::named`] builds, with what they mean.
pub const NAMES: [(&str, &str); 8] = [
    ("raid0", "stripe over members"),
    ("raid1", "mirror of members"),
    ("raid10", "stripe of mirrors"),
    ("raid01", "mirror of stripes"),
    ("raid5", "one rotating parity"),
    ("raid6", "two rotating parities"),
    ("raid50", "stripe of RAID 5 groups"),
    ("raid60", "stripe of RAID 6 groups"),
];

/// What a named tree is built from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Members in all.
    pub members: usize,
    /// Chunk of every striping node.
    pub chunk_bytes: u64,
    /// Rotation of every parity node.
    pub rotation: Rotation,
    /// Groups of raid50 and raid60; copies of raid10 and raid01 are `members / groups`.
    pub groups: Option<usize>,
}

fn members(n: usize) -> Vec<Tree> {
    vec![Tree::member(); n]
}

impl Tree {
    /// RAID 0 over `n` members.
    pub fn raid0(n: usize, chunk_bytes: u64) -> Tree {
        Tree::Stripe { chunk_bytes, children: members(n) }
    }

    /// RAID 1 of `n` copies.
    pub fn raid1(n: usize) -> Tree {
        Tree::Mirror { children: members(n) }
    }

    /// RAID 10: a stripe over `pairs` mirrors of two.
    pub fn raid10(pairs: usize, chunk_bytes: u64) -> Tree {
        Tree::Stripe { chunk_bytes, children: vec![Tree::raid1(2); pairs] }
    }

    /// RAID 0+1: a mirror of two stripes over `width` members each.
    pub fn raid01(width: usize, chunk_bytes: u64) -> Tree {
        Tree::Mirror { children: vec![Tree::raid0(width, chunk_bytes); 2] }
    }

    /// RAID 5 (`parities` 1) or RAID 6 (2) over `n` members.
    pub fn parity(parities: u32, n: usize, chunk_bytes: u64, rotation: Rotation) -> Tree {
        Tree::Parity { parities, rotation, chunk_bytes, children: members(n) }
    }

    /// RAID 50 (`parities` 1) or RAID 60 (2): a stripe over `groups` parity groups of `width` members; the outer chunk is
    /// the inner group's full stripe of data, so that a full stripe inside is one chunk outside.
    pub fn striped_parity(parities: u32, groups: usize, width: usize, chunk_bytes: u64, rotation: Rotation) -> Tree {
        let data = width.saturating_sub(parities as usize).max(1) as u64;
        Tree::Stripe {
            chunk_bytes: chunk_bytes * data,
            children: vec![Tree::parity(parities, width, chunk_bytes, rotation); groups],
        }
    }

    /// A tree by its common name, or a sentence on what the name needs; `None` for a name not in [`NAMES`].
    pub(super) fn named(name: &str, s: Shape) -> Option<Result<Tree, String>> {
        let halves = |what: &str| match s.members {
            n if n >= 2 && n % 2 == 0 => Ok(n / 2),
            n => Err(format!("{what} has {n} member(s); it needs an even number, at least 2")),
        };
        let grouped = |parities: u32, what: &str, least: usize| {
            let groups = s.groups.unwrap_or(2);
            if groups == 0 || !s.members.is_multiple_of(groups) || s.members / groups < least {
                return Err(format!(
                    "{what} has {} members in {groups} groups; it needs equal groups of at least {least}",
                    s.members
                ));
            }
            Ok(Tree::striped_parity(parities, groups, s.members / groups, s.chunk_bytes, s.rotation))
        };
        Some(match name {
            "raid0" => Ok(Tree::raid0(s.members, s.chunk_bytes)),
            "raid1" => Ok(Tree::raid1(s.members)),
            "raid10" => halves("RAID 10").map(|n| Tree::raid10(n, s.chunk_bytes)),
            "raid01" => halves("RAID 0+1").map(|n| Tree::raid01(n, s.chunk_bytes)),
            "raid5" if s.members < 3 => Err(format!("RAID 5 has {} member(s); it needs at least 3", s.members)),
            "raid6" if s.members < 4 => Err(format!("RAID 6 has {} member(s); it needs at least 4", s.members)),
            "raid5" => Ok(Tree::parity(1, s.members, s.chunk_bytes, s.rotation)),
            "raid6" => Ok(Tree::parity(2, s.members, s.chunk_bytes, s.rotation)),
            "raid50" => grouped(1, "RAID 50", 3),
            "raid60" => grouped(2, "RAID 60", 4),
            _ => return None,
        })
    }
}
