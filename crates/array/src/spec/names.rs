//! Constructors of trees by their common names.

use super::{CopyKind, CopyLayout, Parameters, Rotation, Tree, Word};

/// The common names. All are built over members, as many as the text has.
pub(super) static NAMES: [Word; 8] = [
    Word { name: "raid0", keys: &["members", "chunk"], build: |p| Ok(Tree::raid0(p.children.len(), p.chunk_bytes)) },
    Word { name: "raid1", keys: &["members"], build: |p| Ok(Tree::raid1(p.children.len())) },
    Word {
        name: "raid10",
        keys: &["members", "chunk", "layout"],
        build: |p| Ok(mirrored(p.children.len(), p.chunk_bytes, p.layout)),
    },
    Word {
        name: "raid01",
        keys: &["members", "chunk"],
        build: |p| Ok(Tree::raid01(half("RAID 0+1", &p)?, p.chunk_bytes)),
    },
    Word { name: "raid5", keys: &["members", "chunk", "rotation"], build: |p| rotating("RAID 5", 1, 3, &p) },
    Word { name: "raid6", keys: &["members", "chunk", "rotation"], build: |p| rotating("RAID 6", 2, 4, &p) },
    Word { name: "raid50", keys: &["members", "chunk", "rotation", "groups"], build: |p| grouped("RAID 50", 1, 3, &p) },
    Word { name: "raid60", keys: &["members", "chunk", "rotation", "groups"], build: |p| grouped("RAID 60", 2, 4, &p) },
];

/// RAID 10 over `n` members. Copies side by side that come out even are mirrors below a stripe.
fn mirrored(n: usize, chunk_bytes: u64, layout: CopyLayout) -> Tree {
    let copies = layout.copies as usize;
    match layout.kind {
        CopyKind::Near if copies > 1 && n > 0 && n.is_multiple_of(copies) => {
            Tree::Stripe { chunk_bytes, children: vec![Tree::raid1(copies); n / copies] }
        }
        _ => Tree::Copies { layout, chunk_bytes, children: members(n) },
    }
}

/// Half the members, which must be an even number.
fn half(what: &str, p: &Parameters) -> Result<usize, String> {
    match p.children.len() {
        n if n >= 2 && n % 2 == 0 => Ok(n / 2),
        n => Err(format!("{what} has {n} member(s); it needs an even number, at least 2")),
    }
}

/// RAID 5 or RAID 6 over at least `least` members.
fn rotating(what: &str, parities: u32, least: usize, p: &Parameters) -> Result<Tree, String> {
    match p.children.len() {
        n if n < least => Err(format!("{what} has {n} member(s); it needs at least {least}")),
        n => Ok(Tree::parity(parities, n, p.chunk_bytes, p.rotation)),
    }
}

/// RAID 50 or RAID 60 of groups of at least `least` members.
fn grouped(what: &str, parities: u32, least: usize, p: &Parameters) -> Result<Tree, String> {
    let (members, groups) = (p.children.len(), p.groups.unwrap_or(2));
    if groups == 0 || !members.is_multiple_of(groups) || members / groups < least {
        return Err(format!(
            "{what} has {members} members in {groups} groups; it needs equal groups of at least {least}"
        ));
    }
    Ok(Tree::striped_parity(parities, groups, members / groups, p.chunk_bytes, p.rotation))
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
}
