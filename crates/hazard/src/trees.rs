//! Random trees, and an independent statement of which sectors they can still give back.

#![allow(clippy::cast_lossless, clippy::cast_possible_truncation, reason = "numbers here are small")]

use raidlab_array::{CopyKind, CopyLayout, Layout, MapCell, Rotation, Tree};
use raidlab_types::CounterRng;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use CopyKind::{Far, Near, Offset};

/// A tree or two of each level but parity, of at most seven members, for tests that try everything.
pub fn trees_without_parity() -> Vec<Tree> {
    let mirror = |n| Tree::raid1(n);
    let mut trees = vec![
        Tree::raid0(3, 2),
        Tree::raid0(7, 1),
        mirror(2),
        mirror(3),
        Tree::raid10(2, 2),
        Tree::raid10(3, 1),
        Tree::raid01(2, 3),
        Tree::Concat { children: vec![mirror(2), Tree::member(), Tree::raid0(2, 1)] },
        Tree::Independent { children: vec![mirror(2), mirror(2)] },
    ];
    for (kind, copies, n) in
        [(Near, 2, 3), (Near, 2, 5), (Near, 3, 4), (Near, 2, 4), (Far, 2, 2), (Far, 2, 4), (Far, 3, 4)]
    {
        trees.push(copies_of(CopyLayout { kind, copies }, n, 1));
    }
    for (kind, copies, n) in [(Near, 3, 5), (Far, 2, 3), (Offset, 2, 3), (Offset, 3, 3), (Offset, 2, 4)] {
        trees.push(copies_of(CopyLayout { kind, copies }, n, 2));
    }
    trees
}

/// RAID 10 as md deals it, over `n` members.
pub fn copies_of(layout: CopyLayout, n: usize, chunk_bytes: u64) -> Tree {
    Tree::Copies { layout, chunk_bytes, children: vec![Tree::member(); n] }
}

/// Stripes of `width` over `n` members.
pub fn declustered(n: usize, width: u32, parities: u32, chunk_bytes: u64) -> Tree {
    spared(n, width, parities, 0, chunk_bytes)
}

/// The same beside distributed spares.
pub fn spared(n: usize, width: u32, parities: u32, spares: u32, chunk_bytes: u64) -> Tree {
    Tree::Declustered { width, parities, spares, chunk_bytes, children: vec![Tree::member(); n] }
}

/// The fewest distributed spares beside which stripes come out even; 0 where there is no room for any.
pub fn fewest_spares(n: usize, width: u32) -> u32 {
    let (n, rest) = (n as u32, n as u32 % width);
    let spares = if rest > 0 { rest } else { width };
    if spares + width <= n {
        spares
    } else {
        0
    }
}

/// Any layout of copies.
pub fn random_layout(rng: &mut CounterRng) -> CopyLayout {
    CopyLayout { kind: [Near, Far, Offset][rng.below(3) as usize], copies: 2 + rng.below(2) as u32 }
}

/// A random tree of at most `depth` levels over members, of at most about 20 members; `with_parity` asks for parity nodes
/// often.
pub fn random_tree(rng: &mut CounterRng, depth: u32) -> Tree {
    loop {
        let tree = node(rng, depth);
        if (2..=16).contains(&tree.leaves()) && tree.validate().is_ok() {
            return tree;
        }
    }
}

fn node(rng: &mut CounterRng, depth: u32) -> Tree {
    if depth == 0 || rng.below(5) == 0 {
        return Tree::Member { data_offset_bytes: rng.below(3) };
    }
    let mut children = |least: u64, most: u64| {
        let n = least + rng.below(most - least + 1);
        // Mostly equal children, as real arrays have them; now and then each its own.
        match rng.below(3) {
            0 => (0..n).map(|_| node(rng, depth - 1)).collect(),
            _ => vec![node(rng, depth - 1); n as usize],
        }
    };
    let (mirrors, many, raid5, raid6) = (children(2, 3), children(1, 4), children(2, 6), children(3, 7));
    let chunk_bytes = 1 + rng.below(4);
    let rotation = Rotation::ALL[rng.below(6) as usize];
    let layout = random_layout(rng);
    match rng.below(11) {
        10 => {
            let parities = 1 + rng.below(2) as u32;
            let width = (parities + 1 + rng.below(3) as u32).min(raid6.len() as u32);
            // That needs no draw of its own, so that all others stay what they were.
            let may_spare = rotation.name().ends_with("symmetric") && raid6.iter().all(|c| c.children().is_empty());
            let spares = if may_spare { fewest_spares(raid6.len(), width) } else { 0 };
            Tree::Declustered { width, parities, spares, chunk_bytes: 1 + rng.below(2), children: raid6 }
        }
        0 => Tree::Concat { children: many },
        8 | 9 => Tree::Copies { layout, chunk_bytes, children: raid5 },
        1 | 2 => Tree::Stripe { chunk_bytes, children: many },
        3 => Tree::Mirror { children: mirrors },
        4 | 5 => Tree::Parity { parities: 1, rotation, chunk_bytes, children: raid5 },
        _ => Tree::Parity { parities: 2, rotation, chunk_bytes, children: raid6 },
    }
}

/// A tree in the grammar that users write, for replaying a failure by hand.
pub fn text(tree: &Tree) -> String {
    let list = |children: &[Tree]| children.iter().map(text).collect::<Vec<_>>().join(", ");
    match tree {
        Tree::Member { data_offset_bytes: 0 } => "member".into(),
        Tree::Member { data_offset_bytes } => format!("member+{data_offset_bytes}"),
        Tree::Stripe { chunk_bytes, children } => format!("stripe({}, chunk={chunk_bytes})", list(children)),
        Tree::Parity { parities, rotation, chunk_bytes, children } => {
            let rotation = rotation.name();
            format!("parity({}, parities={parities}, rotation={rotation}, chunk={chunk_bytes})", list(children))
        }
        Tree::Declustered { width, parities, spares, chunk_bytes, children } => {
            let keys = format!("width={width}, parities={parities}, spares={spares}, chunk={chunk_bytes}");
            format!("declustered({}, {keys})", list(children))
        }
        Tree::Copies { layout, chunk_bytes, children } => {
            format!("copies({}, layout={layout}, chunk={chunk_bytes})", list(children))
        }
        other => format!("{}({})", other.level(), list(other.children())),
    }
}

/// Says on one line how to repeat a case, if the case fails.
pub struct ReplayLine(pub String);

impl Drop for ReplayLine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay: {}", self.0);
        }
    }
}

/// What has gone wrong with the members.
pub struct Losses<'a> {
    /// Sizes of all members.
    pub members: &'a [u64],
    /// Whether a member is missing.
    pub missing: &'a dyn Fn(usize) -> bool,
    /// Whether a member's sector (of its data) is bad.
    pub bad: &'a dyn Fn(usize, u64) -> bool,
    /// The distributed spare in which a member stands, and up to which sector it does.
    pub spare: &'a dyn Fn(usize) -> Option<(u32, u64)>,
}

/// Whether the node has lost more members than it bears: then it counts as missing, whatever its other members hold.
pub fn lost(tree: &Tree, first_leaf: usize, losses: &Losses) -> bool {
    let mut leaf = first_leaf;
    let gone: Vec<bool> = tree
        .children()
        .iter()
        .map(|c| {
            leaf += c.leaves();
            lost(c, leaf - c.leaves(), losses)
        })
        .collect();
    // Only members stand in spares: the leaves of a declustered node one by one.
    let is_lost = |&i: &usize| gone[i] && (tree.spares() == 0 || (losses.spare)(first_leaf + i).is_none());
    let count = (0..gone.len()).filter(is_lost).count();
    match tree {
        Tree::Member { .. } => (losses.missing)(first_leaf),
        Tree::Mirror { children } => count == children.len(),
        // In as many chunks as there are children every set of children occurs that holds one.
        Tree::Copies { layout, children, .. } => (0..children.len() as u64).any(|chunk| {
            let holders =
                (0..layout.copies as u64).map(|copy| copy_place(*layout, children.len() as u64, 0, chunk, copy));
            holders.into_iter().all(|(position, _)| gone[position as usize])
        }),
        Tree::Parity { parities, .. } | Tree::Declustered { parities, .. } => count > *parities as usize,
        Tree::Independent { .. } | Tree::Concat { .. } | Tree::Stripe { .. } => count > 0,
    }
}

/// Sectors of the node, and its number of leaves.
fn size(tree: &Tree, first_leaf: usize, members: &[u64]) -> u64 {
    let mut leaf = first_leaf;
    let sizes = tree.children().iter().map(|c| {
        leaf += c.leaves();
        size(c, leaf - c.leaves(), members)
    });
    match tree {
        Tree::Member { data_offset_bytes } => members[first_leaf].saturating_sub(*data_offset_bytes),
        Tree::Independent { .. } => unreachable!("a volume is meant"),
        Tree::Concat { .. } => sizes.sum(),
        Tree::Stripe { chunk_bytes, children } => whole_chunks(sizes, *chunk_bytes) * children.len() as u64,
        Tree::Mirror { .. } => whole_chunks(sizes, 1),
        Tree::Copies { chunk_bytes, layout, children } => {
            let rows = whole_chunks(sizes, *chunk_bytes) / chunk_bytes;
            // All chunks of the members that are used, over the copies that each takes.
            let all = match layout.kind {
                Near => rows * children.len() as u64,
                _ => rows / layout.copies as u64 * layout.copies as u64 * children.len() as u64,
            };
            all / layout.copies as u64 * chunk_bytes
        }
        Tree::Parity { chunk_bytes, parities, children, .. } => {
            whole_chunks(sizes, *chunk_bytes) * (children.len() as u64 - u64::from(*parities))
        }
        Tree::Declustered { chunk_bytes, width, parities, spares, children } => {
            let (stripes, rows) = block((children.len(), *width, *parities, *spares));
            whole_chunks(sizes, *chunk_bytes * rows) / rows * stripes * u64::from(width - parities)
        }
    }
}

/// Sectors of the whole chunks that the smallest child has.
fn whole_chunks(sizes: impl Iterator<Item = u64>, chunk: u64) -> u64 {
    sizes.min().unwrap_or(0) / chunk * chunk
}

/// Whether sector `lba` of the node can be given back, by the definition of each level and nothing of the planner's.
pub fn recoverable(tree: &Tree, first_leaf: usize, losses: &Losses, lba: u64) -> bool {
    if lost(tree, first_leaf, losses) {
        return false;
    }
    let starts: Vec<usize> =
        tree.children().iter().scan(first_leaf, |at, c| Some(std::mem::replace(at, *at + c.leaves()))).collect();
    let child = |i: usize, lba: u64| recoverable(&tree.children()[i], starts[i], losses, lba);
    let n = tree.children().len() as u64;
    match tree {
        Tree::Member { .. } => !(losses.bad)(first_leaf, lba),
        Tree::Independent { .. } => unreachable!("a volume is meant"),
        Tree::Concat { children } => {
            let mut at = lba;
            for (i, c) in children.iter().enumerate() {
                let sectors = size(c, starts[i], losses.members);
                if at < sectors {
                    return child(i, at);
                }
                at -= sectors;
            }
            false
        }
        Tree::Stripe { chunk_bytes: c, .. } => child((lba / c % n) as usize, lba / c / n * c + lba % c),
        Tree::Mirror { .. } => (0..n as usize).any(|i| child(i, lba)),
        Tree::Copies { chunk_bytes: c, layout, children } => {
            let sizes = children.iter().zip(&starts).map(|(c, start)| size(c, *start, losses.members));
            let part = whole_chunks(sizes, *c) / c / layout.copies as u64;
            (0..layout.copies as u64).any(|copy| {
                let (position, row) = copy_place(*layout, n, part, lba / c, copy);
                child(position as usize, row * c + lba % c)
            })
        }
        Tree::Parity { chunk_bytes: c, parities, rotation, .. } => {
            let data = n - *parities as u64;
            let (row, column) = (lba / c / data, lba / c % data);
            let at = row * c + lba % c;
            let position = data_position(*rotation, n, *parities as u64, row, column);
            child(position as usize, at) || (0..n as usize).filter(|&i| !child(i, at)).count() <= *parities as usize
        }
        &Tree::Declustered { chunk_bytes: c, width, parities, spares, .. } => {
            let stripe = lba / c / u64::from(width - parities);
            let shape = (n as usize, width, parities, spares);
            let drawn = Drawn::of(shape, stripe / block(shape).0 + 1);
            let (members, position) = (&drawn.stripes[stripe as usize], drawn.data[&(lba / c)]);
            let there = |&(mut i, row): &(usize, u64)| {
                let at = row * c + lba % c;
                // What stands in a spare is on another member, which may stand in a spare itself.
                while !child(i, at) {
                    match (losses.spare)(first_leaf + i).filter(|_| tree.spares() > 0) {
                        Some((number, valid)) if at < valid => i = drawn.spares[&(row, number)],
                        _ => return false,
                    }
                }
                true
            };
            there(&position) || members.iter().filter(|&member| !there(member)).count() <= parities as usize
        }
    }
}

/// Where members of declustered stripes lie, as the map of a flat tree draws them: what plans do is worked out the other way
/// round, from the stripe to its members.
struct Drawn {
    /// The members of each stripe: child and row.
    stripes: Vec<Vec<(usize, u64)>>,
    /// Where each chunk of data lies.
    data: BTreeMap<u64, (usize, u64)>,
    /// The child that has a spare chunk, by row and the chunk's number.
    spares: BTreeMap<(u64, u32), usize>,
}

/// Members, members of a stripe, parities and distributed spares.
type Shape = (usize, u32, u32, u32);

/// Stripes of a block, and its rows of chunks.
fn block((n, width, _, spares): Shape) -> (u64, u64) {
    match spares {
        0 => (n as u64, width.into()),
        _ => ((n as u64 - u64::from(spares)) / u64::from(width), 1),
    }
}

impl Drawn {
    /// At least the first blocks of rows. Kept, for designs are sought.
    fn of(shape: Shape, blocks: u64) -> Rc<Drawn> {
        type Kept = BTreeMap<Shape, (u64, Rc<Drawn>)>;
        thread_local!(static KEPT: RefCell<Kept> = const { RefCell::new(BTreeMap::new()) });
        KEPT.with_borrow_mut(|kept| {
            let (known, drawn) = kept.entry(shape).or_insert_with(|| (0, Rc::new(Drawn::draw(shape, 0))));
            if *known < blocks {
                (*known, *drawn) = (blocks, Rc::new(Drawn::draw(shape, blocks)));
            }
            Rc::clone(drawn)
        })
    }

    fn draw(shape: Shape, blocks: u64) -> Drawn {
        let (n, width, parities, spares) = shape;
        let (stripes, rows) = block(shape);
        let (stripes, rows) = (blocks.max(1) * stripes, blocks.max(1) * rows);
        let layout = Layout::new(&spared(n, width, parities, spares, 1), &vec![rows; n], 1).expect("whole blocks");
        let stripes = vec![Vec::new(); stripes as usize];
        let mut drawn = Drawn { stripes, data: BTreeMap::new(), spares: BTreeMap::new() };
        for (child, cells) in layout.map(rows).cells.iter().enumerate() {
            for (row, cell) in (0..).zip(cells) {
                let stripe = match cell {
                    MapCell::Data { lba, .. } => {
                        drawn.data.insert(*lba, (child, row));
                        lba / u64::from(width - parities)
                    }
                    MapCell::P { row: stripe, .. } | MapCell::Q { row: stripe, .. } => *stripe,
                    MapCell::Spare { number } => {
                        drawn.spares.insert((row, *number), child);
                        continue;
                    }
                    MapCell::Unused => unreachable!("whole blocks are used"),
                };
                drawn.stripes[stripe as usize].push((child, row));
            }
        }
        drawn
    }
}

/// A member whose sectors may rot so that the others tell, and which of them.
pub type Rottable = (usize, Box<dyn Fn(u64) -> bool>);

/// One member of each group of members that are all well: any of RAID 6 and of three copies; of RAID 5 its parity and of two
/// copies the second, since else the data is believed.
pub fn rottable(tree: &Tree, is_well: &dyn Fn(usize) -> bool) -> Vec<Rottable> {
    let (mut found, mut leaf) = (Vec::new(), 0);
    rottable_below(tree, &mut leaf, is_well, &mut found);
    found
}

fn rottable_below(tree: &Tree, leaf: &mut usize, is_well: &dyn Fn(usize) -> bool, found: &mut Vec<Rottable>) {
    let (first, children) = (*leaf, tree.children());
    if children.is_empty() {
        *leaf += 1;
        return;
    }
    children.iter().for_each(|child| rottable_below(child, leaf, is_well, found));
    let members = children.iter().all(|child| matches!(child, Tree::Member { .. }));
    if !members || !(first..*leaf).all(is_well) {
        return;
    }
    let n = children.len();
    match tree {
        Tree::Mirror { .. } => found.push((first + n - 1, Box::new(|_| true))),
        Tree::Copies { layout, .. } if layout.copies > 2 => found.push((first + n / 2, Box::new(|_| true))),
        &Tree::Parity { parities, rotation, chunk_bytes: c, .. } => {
            let (n, parities, position) = (n as u64, u64::from(parities), n as u64 / 2);
            found.push((
                first + n as usize / 2,
                Box::new(move |lba| {
                    let is_data = (0..n - parities)
                        .any(|column| data_position(rotation, n, parities, lba / c, column) == position);
                    parities == 2 || !is_data
                }),
            ));
        }
        &Tree::Declustered { width, parities, spares, chunk_bytes: c, .. } => {
            let (at, shape) = (n / 2, (n, width, parities, spares));
            found.push((
                first + at,
                Box::new(move |lba| {
                    let drawn = Drawn::of(shape, lba / c / block(shape).1 + 1);
                    parities == 2 || !drawn.data.values().any(|&place| place == (at, lba / c))
                }),
            ));
        }
        _ => {}
    }
}

/// Whether every node that is not lost can give back all it holds. (A nested node may hold parity of the node above that
/// nobody can read back, while all user data still can be; writing there may then be refused.)
pub fn sound(tree: &Tree, first_leaf: usize, losses: &Losses) -> bool {
    let independent = matches!(tree, Tree::Independent { .. });
    if matches!(tree, Tree::Member { .. }) || (!independent && lost(tree, first_leaf, losses)) {
        return true;
    }
    let whole = independent
        || (0..size(tree, first_leaf, losses.members)).all(|lba| recoverable(tree, first_leaf, losses, lba));
    let mut leaf = first_leaf;
    whole
        && tree.children().iter().all(|c| {
            leaf += c.leaves();
            sound(c, leaf - c.leaves(), losses)
        })
}

/// Child and row of copy number `copy` of a chunk, by the rules of the golden files; `part`: rows of a part of `far`.
fn copy_place(layout: CopyLayout, n: u64, part: u64, chunk: u64, copy: u64) -> (u64, u64) {
    let copies = layout.copies as u64;
    match layout.kind {
        Near => ((chunk * copies + copy) % n, (chunk * copies + copy) / n),
        Far => ((chunk % n + copy) % n, part * copy + chunk / n),
        Offset => ((chunk % n + copy) % n, chunk / n * copies + copy),
    }
}

/// Member of data chunk `column`, by the table of the golden files' rules.
fn data_position(rotation: Rotation, n: u64, parities: u64, row: u64, column: u64) -> u64 {
    let p = match rotation {
        Rotation::LeftSymmetric | Rotation::LeftAsymmetric => n - 1 - row % n,
        Rotation::RightSymmetric | Rotation::RightAsymmetric => row % n,
        Rotation::ParityFirst => 0,
        Rotation::ParityLast => n - parities,
    };
    let is_parity = |m: u64| m == p || (parities == 2 && m == (p + 1) % n);
    match rotation {
        Rotation::LeftSymmetric | Rotation::RightSymmetric => (p + parities + column) % n,
        _ => (0..n).filter(|&m| !is_parity(m)).nth(column as usize).expect("a data member"),
    }
}
