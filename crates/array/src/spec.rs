//! An array as a tree of levels: the specification, its names, and the text in which users write it.
//!
//! Text grammar (blanks are free):
//!
//! ```text
//! tree    = name [ "(" arg { "," arg } ")" ]      raid5(5, chunk=64KiB)      stripe(4*mirror(2), chunk=64KiB)
//!         | name ":" count [ ":" size ]           raid5:5    raid5:5:64KiB
//! arg     = count                                 that many members
//!         | [ count "*" ] tree                    children
//!         | key "=" value                         chunk, rotation, layout, parities, width, spares,
//!                                                groups, members
//! ```

mod names;
mod parse;

use raidlab_types::number::{gcd, usize_from};
use raidlab_types::SpecError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the text of a tree says of one node, with what holds where it says nothing.
struct Parameters {
    children: Vec<Tree>,
    chunk_bytes: u64,
    rotation: Rotation,
    layout: CopyLayout,
    parities: u32,
    /// Members of a stripe.
    width: Option<u32>,
    /// Members' worth of space that is spare.
    spares: u32,
    /// Groups of a common name that builds several.
    groups: Option<usize>,
    data_offset_bytes: u64,
}

/// A name in the text of a tree.
struct Word {
    name: &'static str,
    /// The keys that mean something to it.
    keys: &'static [&'static str],
    /// The tree, or what the name needs.
    build: fn(Parameters) -> Result<Tree, String>,
}

/// The levels a node can have.
static LEVELS: [Word; 8] = [
    Word { name: "independent", keys: &["members"], build: |p| Ok(Tree::Independent { children: p.children }) },
    Word { name: "concat", keys: &["members"], build: |p| Ok(Tree::Concat { children: p.children }) },
    Word {
        name: "stripe",
        keys: &["members", "chunk"],
        build: |Parameters { chunk_bytes, children, .. }| Ok(Tree::Stripe { chunk_bytes, children }),
    },
    Word { name: "mirror", keys: &["members"], build: |p| Ok(Tree::Mirror { children: p.children }) },
    Word {
        name: "copies",
        keys: &["members", "chunk", "layout"],
        build: |Parameters { layout, chunk_bytes, children, .. }| Ok(Tree::Copies { layout, chunk_bytes, children }),
    },
    Word {
        name: "parity",
        keys: &["members", "chunk", "rotation", "parities"],
        build: |Parameters { parities, rotation, chunk_bytes, children, .. }| {
            Ok(Tree::Parity { parities, rotation, chunk_bytes, children })
        },
    },
    Word {
        name: "declustered",
        keys: &["members", "chunk", "width", "parities", "spares"],
        build: |Parameters { width, parities, spares, chunk_bytes, children, .. }| {
            let width = width.ok_or_else(|| {
                let beside = children.len().saturating_sub(spares as usize);
                // Beside spares stripes have to come out even.
                let fits = |&width: &u32| spares == 0 || beside.is_multiple_of(width as usize);
                let fitting = (parities.saturating_add(3)..=16).find(fits).unwrap_or(4);
                format!("'declustered' does not say how many members a stripe has; accepted: width = {fitting}")
            })?;
            Ok(Tree::Declustered { width, parities, spares, chunk_bytes, children })
        },
    },
    Word {
        name: "member",
        keys: &["data_offset"],
        build: |Parameters { data_offset_bytes, .. }| Ok(Tree::Member { data_offset_bytes }),
    },
];

/// Where parity goes from stripe to stripe, as Linux md names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rotation {
    /// Parity moves from the last member down; data starts after the parity and wraps around. md's default.
    LeftSymmetric,
    /// Parity moves from the last member down; data goes left to right around it.
    LeftAsymmetric,
    /// Parity moves from the first member up; data starts after the parity and wraps around.
    RightSymmetric,
    /// Parity moves from the first member up; data goes left to right around it (the Berkeley study's).
    RightAsymmetric,
    /// Parity on the first member(s), always.
    ParityFirst,
    /// Parity on the last member(s), always.
    ParityLast,
}

impl Rotation {
    /// All six, in the order of the reference.
    pub const ALL: [Rotation; 6] = [
        Rotation::LeftSymmetric,
        Rotation::LeftAsymmetric,
        Rotation::RightSymmetric,
        Rotation::RightAsymmetric,
        Rotation::ParityFirst,
        Rotation::ParityLast,
    ];

    /// The name used in study files.
    pub const fn name(self) -> &'static str {
        match self {
            Rotation::LeftSymmetric => "left_symmetric",
            Rotation::LeftAsymmetric => "left_asymmetric",
            Rotation::RightSymmetric => "right_symmetric",
            Rotation::RightAsymmetric => "right_asymmetric",
            Rotation::ParityFirst => "parity_first",
            Rotation::ParityLast => "parity_last",
        }
    }
}

/// Which way the copies of a chunk lie from each other, as Linux md names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyKind {
    /// Side by side.
    Near,
    /// In another part of the next child.
    Far,
    /// In the next row of chunks, on the next child.
    Offset,
}

/// Where the copies of a chunk lie, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CopyLayout {
    /// Which way.
    pub kind: CopyKind,
    /// How many, the first included.
    pub copies: u32,
}

impl CopyLayout {
    /// Two copies side by side, md's default.
    pub const NEAR2: CopyLayout = CopyLayout { kind: CopyKind::Near, copies: 2 };

    /// The positions of the children that hold the copies of a chunk, for every such set among `children`.
    pub(crate) fn holders(self, children: usize) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        let copies = self.copies as usize;
        let step = if self.kind == CopyKind::Near { copies } else { 1 };
        let sets = children as u64 / gcd(children as u64, step as u64);
        (0..usize_from(sets)).map(move |i| (0..copies).map(move |copy| (i * step + copy) % children))
    }
}

impl fmt::Display for CopyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CopyKind::Near => "near",
            CopyKind::Far => "far",
            CopyKind::Offset => "offset",
        };
        write!(f, "{kind}{}", self.copies)
    }
}

impl From<CopyLayout> for String {
    fn from(layout: CopyLayout) -> String {
        layout.to_string()
    }
}

impl TryFrom<String> for CopyLayout {
    type Error = String;

    /// Reads `far2`, or `f2` as mdadm writes it.
    fn try_from(text: String) -> Result<CopyLayout, String> {
        let digits = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let kind = match &text[..text.len() - digits.len()] {
            "near" | "n" => Some(CopyKind::Near),
            "far" | "f" => Some(CopyKind::Far),
            "offset" | "o" => Some(CopyKind::Offset),
            _ => None,
        };
        match (kind, digits.parse()) {
            (Some(kind), Ok(copies)) => Ok(CopyLayout { kind, copies }),
            _ => Err(format!("'{text}'; accepted: near, far or offset and how many copies, such as far2 (or f2)")),
        }
    }
}

/// A node of the tree. Leaves are members, numbered in depth-first order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Tree {
    /// A device.
    Member {
        /// Bytes at its start that hold no data (room for superblock, bitmap, journal).
        #[serde(default, skip_serializing_if = "is_zero")]
        data_offset_bytes: u64,
    },
    /// Separate volumes; at the root only.
    Independent {
        /// One volume each.
        children: Vec<Tree>,
    },
    /// One child after another.
    Concat {
        /// In order.
        children: Vec<Tree>,
    },
    /// RAID 0.
    Stripe {
        /// One child's contiguous part of a stripe.
        chunk_bytes: u64,
        /// In order.
        children: Vec<Tree>,
    },
    /// RAID 1.
    Mirror {
        /// The copies.
        children: Vec<Tree>,
    },
    /// RAID 10 as Linux md deals it: every chunk on several children.
    Copies {
        /// How many, and where they lie.
        layout: CopyLayout,
        /// One child's contiguous part of a stripe.
        chunk_bytes: u64,
        /// In order.
        children: Vec<Tree>,
    },
    /// RAID 5 (one parity) or RAID 6 (two).
    Parity {
        /// 1 or 2.
        parities: u32,
        /// Where the parity goes.
        rotation: Rotation,
        /// One child's contiguous part of a stripe.
        chunk_bytes: u64,
        /// In order.
        children: Vec<Tree>,
    },
    /// Parity declustering: stripes of fewer members than there are children, spread evenly over these.
    Declustered {
        /// Members of a stripe, parity included.
        width: u32,
        /// 1 or 2.
        parities: u32,
        /// How many members' worth of space is spare, in every row of chunks on others of them.
        #[serde(default, skip_serializing_if = "is_none")]
        spares: u32,
        /// One child's contiguous part of a stripe.
        chunk_bytes: u64,
        /// In order.
        children: Vec<Tree>,
    },
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_none(spares: &u32) -> bool {
    *spares == 0
}

impl Tree {
    /// A device without a data offset.
    pub const fn member() -> Tree {
        Tree::Member { data_offset_bytes: 0 }
    }

    /// Children of the node; none for a member.
    pub fn children(&self) -> &[Tree] {
        match self {
            Tree::Member { .. } => &[],
            Tree::Independent { children }
            | Tree::Concat { children }
            | Tree::Stripe { children, .. }
            | Tree::Mirror { children }
            | Tree::Copies { children, .. }
            | Tree::Parity { children, .. }
            | Tree::Declustered { children, .. } => children,
        }
    }

    /// Number of members.
    pub fn leaves(&self) -> usize {
        match self {
            Tree::Member { .. } => 1,
            _ => self.children().iter().map(Tree::leaves).sum(),
        }
    }

    /// The level's name, as in the text of a tree.
    pub const fn level(&self) -> &'static str {
        match self {
            Tree::Independent { .. } => "independent",
            Tree::Concat { .. } => "concat",
            Tree::Stripe { .. } => "stripe",
            Tree::Mirror { .. } => "mirror",
            Tree::Copies { .. } => "copies",
            Tree::Parity { .. } => "parity",
            Tree::Declustered { .. } => "declustered",
            Tree::Member { .. } => "member",
        }
    }

    /// One child's contiguous part of a stripe, where the level stripes.
    pub(crate) const fn chunk_bytes(&self) -> Option<u64> {
        match self {
            Tree::Stripe { chunk_bytes, .. }
            | Tree::Copies { chunk_bytes, .. }
            | Tree::Parity { chunk_bytes, .. }
            | Tree::Declustered { chunk_bytes, .. } => Some(*chunk_bytes),
            Tree::Member { .. } | Tree::Independent { .. } | Tree::Concat { .. } | Tree::Mirror { .. } => None,
        }
    }

    /// How many children the node can lose, whichever they are. One without parity keeps a copy more than that.
    pub const fn losses_borne(&self) -> usize {
        match self {
            Tree::Mirror { children } => children.len().saturating_sub(1),
            Tree::Copies { layout, .. } => layout.copies.saturating_sub(1) as usize,
            Tree::Parity { parities, .. } | Tree::Declustered { parities, .. } => *parities as usize,
            Tree::Member { .. } | Tree::Independent { .. } | Tree::Concat { .. } | Tree::Stripe { .. } => 0,
        }
    }

    /// Distributed spares of the node: how many children's worth of its space is spare.
    pub const fn spares(&self) -> u32 {
        match self {
            Tree::Declustered { spares, .. } => *spares,
            _ => 0,
        }
    }

    /// How many members may be lost whichever they are.
    pub fn tolerance(&self) -> usize {
        let mut losses: Vec<usize> = self.children().iter().map(|c| c.tolerance() + 1).collect();
        if let Tree::Copies { layout, .. } = self {
            // The cheapest way to lose the node: all children that hold some chunk.
            let all_of = layout.holders(losses.len()).map(|holders| holders.map(|i| losses[i]).sum::<usize>());
            return all_of.min().unwrap_or(0).saturating_sub(1);
        }
        // The cheapest way to lose the node: one child more than it bears, those first that are lost soonest.
        losses.sort_unstable();
        losses.iter().take(self.losses_borne() + 1).sum::<usize>().saturating_sub(1)
    }

    /// Checks the shape; sizes are checked when a layout is compiled for members of known size.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.validate_at("tree", true)
    }

    fn validate_at(&self, place: &str, at_root: bool) -> Result<(), SpecError> {
        let fail = |message: String| Err(SpecError::new(place, message));
        let n = self.children().len();
        let least = match self {
            Tree::Member { .. } => return Ok(()),
            Tree::Independent { .. } if !at_root => {
                return fail("'independent' may stand only at the root, since a request names its volume".into())
            }
            Tree::Mirror { .. } => 2,
            Tree::Copies { layout: CopyLayout { copies: ..2, .. }, .. } => {
                return fail(format!("{} has fewer than two copies; accepted: 2 or more", self.level_title()))
            }
            Tree::Copies { layout, .. } => layout.copies as usize,
            Tree::Parity { parities, .. } | Tree::Declustered { parities, .. } => {
                if !(1..=2).contains(parities) {
                    return fail(format!("parities = {parities}; accepted: 1 (RAID 5) or 2 (RAID 6)"));
                }
                *parities as usize + 1
            }
            Tree::Independent { .. } | Tree::Concat { .. } | Tree::Stripe { .. } => 1,
        };
        if n < least {
            let what = self.level_title();
            return fail(format!("{what} has {n} member(s); it needs at least {least}"));
        }
        let in_stripe = match self {
            Tree::Declustered { width, .. } if !(least..=n).contains(&(*width as usize)) => {
                return fail(format!("width = {width}; accepted: from {least} (data and parity) to {n}, all members"));
            }
            Tree::Declustered { width, parities: 2, .. } => *width as usize,
            Tree::Parity { parities: 2, .. } => n,
            _ => 0,
        };
        if let Tree::Declustered { width, spares: 1.., .. } = self {
            self.validate_spares(*width as usize).or_else(fail)?;
        }
        if in_stripe > 257 {
            return fail(format!("RAID 6 has {in_stripe} members; GF(2^8) allows at most 255 data members"));
        }
        if self.chunk_bytes() == Some(0) {
            return fail("chunk = 0; accepted: a positive multiple of the sector".into());
        }
        for (i, child) in self.children().iter().enumerate() {
            if self.losses_borne() > 0 && child.has_spares() {
                return fail(format!("distributed spares below {}; accepted: below no redundancy", self.level_title()));
            }
            child.validate_at(&format!("{place}.children[{i}]"), false)?;
        }
        Ok(())
    }

    fn has_spares(&self) -> bool {
        self.spares() > 0 || self.children().iter().any(Tree::has_spares)
    }

    /// Whether stripes of `width` come out even in the rows of what is not spare.
    fn validate_spares(&self, width: usize) -> Result<(), String> {
        let (n, spares) = (self.children().len(), self.spares() as usize);
        if self.children().iter().any(|child| !matches!(child, Tree::Member { .. })) {
            return Err("distributed spares over other levels; accepted: over members".into());
        }
        if n >= spares + width && (n - spares).is_multiple_of(width) {
            return Ok(());
        }
        let come_out: Vec<String> = (1..=n - width)
            .filter(|spares| (n - spares).is_multiple_of(width))
            .map(|spares| spares.to_string())
            .collect();
        let accepted = if come_out.is_empty() { "none".into() } else { come_out.join(", ") };
        Err(format!("spares = {spares} leave no whole stripes of {width} of {n} members; accepted: {accepted}"))
    }

    fn level_title(&self) -> String {
        match self {
            Tree::Parity { parities: 2, .. } => "RAID 6".into(),
            Tree::Parity { .. } => "RAID 5".into(),
            Tree::Mirror { .. } => "a mirror".into(),
            Tree::Copies { layout, .. } => format!("RAID 10 ({layout})"),
            _ => format!("'{}'", self.level()),
        }
    }
}
