//! Layouts and parity against what real Linux md writes, byte for byte (`tests/golden` at the top of the repository).
//!
//! Every array is written through our plans, the rewrite ones again in parts of stripes, under each way of writing parity;
//! then every block of every member must be what the file says, and the map of the layout must name it.

#![allow(clippy::cast_lossless, clippy::cast_possible_truncation, reason = "numbers here are small")]
// A test may read its golden files; the array itself may not.
#![allow(clippy::disallowed_methods)]

use raidlab_hazard as harness;

use harness::Bench;
use raidlab_array::{LayoutMap, MapCell, ParityWrite, Policy, Rotation, Tree};
use raidlab_types::{Extent, Seed};
use std::path::PathBuf;

const BLOCK: usize = 4096;
const REWRITE_BASE: u64 = 1_000_000;

/// A line of `index.csv`.
struct GoldenCase {
    name: String,
    tree: Tree,
    chunk_blocks: u64,
    array_blocks: u64,
    member_blocks: u64,
    rewrite: bool,
}

/// What a file says of one block.
#[derive(Debug, PartialEq)]
enum Expected {
    Data(u64),
    P(u64),
    Q(u64),
    Empty,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn text(path: &str) -> String {
    let path = folder().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn index() -> Vec<GoldenCase> {
    text("index.csv").lines().skip(1).map(golden).collect()
}

fn golden(line: &str) -> GoldenCase {
    let f: Vec<&str> = line.split(',').collect();
    let n: usize = f[3].parse().expect("members");
    let chunk_bytes: u64 = f[4].parse().unwrap_or(BLOCK as u64);
    let rotation = Rotation::ALL.into_iter().find(|r| r.name() == f[2]);
    let parity = |parities| Tree::parity(parities, n, chunk_bytes, rotation.expect("a rotation"));
    let tree = match f[1] {
        "raid0" => Tree::raid0(n, chunk_bytes),
        "raid1" => Tree::raid1(n),
        "raid10" => Tree::parse(&format!("raid10({n}, chunk={chunk_bytes}, layout={})", f[2])).expect("a layout"),
        "raid5" => parity(1),
        "raid6" => parity(2),
        other => panic!("unknown level {other}"),
    };
    GoldenCase {
        name: f[0].into(),
        tree,
        chunk_blocks: chunk_bytes / BLOCK as u64,
        array_blocks: f[5].parse().expect("array_blocks"),
        member_blocks: f[6].parse().expect("member_blocks"),
        rewrite: f[7] == "1",
    }
}

/// `[member][block]`, from the array's file.
fn expected(g: &GoldenCase) -> Vec<Vec<Expected>> {
    let mut members: Vec<Vec<Expected>> = (0..g.tree.leaves()).map(|_| Vec::new()).collect();
    for line in text(&format!("layout/{}.csv", g.name)).lines().skip(1) {
        let f: Vec<&str> = line.split(',').collect();
        let hash = || u64::from_str_radix(f[3], 16).expect("a hash");
        let what = match f[2] {
            "data" => Expected::Data(f[3].parse().expect("a content number")),
            "p" => Expected::P(hash()),
            "q" => Expected::Q(hash()),
            "empty" => Expected::Empty,
            other => panic!("unknown kind {other}"),
        };
        let member = &mut members[f[0].parse::<usize>().expect("a member")];
        assert_eq!(member.len(), f[1].parse::<usize>().expect("a block"), "{}: blocks in order", g.name);
        member.push(what);
    }
    members
}

fn content(number: u64, block: &mut [u8]) {
    for (j, word) in block.chunks_exact_mut(8).enumerate() {
        let seed = number.wrapping_mul(512).wrapping_add(j as u64);
        let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |h, &b| (h ^ b as u64).wrapping_mul(0x100_0000_01B3))
}

fn write_blocks(bench: &mut Bench, extent: Extent, base: u64) {
    let mut user = vec![0; extent.sectors as usize * BLOCK];
    for (block, number) in user.chunks_exact_mut(BLOCK).zip(base + extent.lba..) {
        content(number, block);
    }
    bench.run(0, true, extent, &mut user, &mut Seed::new(extent.lba).draws()).expect("all members are online");
}

/// The array written as the golden files say, one request at a time.
fn written(g: &GoldenCase, policy: Policy) -> Bench {
    let mut bench = Bench::with_sector(&g.tree, g.member_blocks, policy, BLOCK);
    write_blocks(&mut bench, Extent::new(0, g.array_blocks), 0);
    if g.rewrite {
        for group in (0..g.array_blocks).step_by(11) {
            for extent in [Extent::new(group + 3, 2), Extent::new(group + 8, 1)] {
                if extent.end() <= g.array_blocks {
                    write_blocks(&mut bench, extent, REWRITE_BASE);
                }
            }
        }
    }
    bench
}

fn check_members(g: &GoldenCase, bench: &Bench, policy: &Policy) {
    let mut wanted = vec![0; BLOCK];
    for (m, blocks) in expected(g).iter().enumerate() {
        assert_eq!(blocks.len() as u64, g.member_blocks, "{}", g.name);
        for (i, (what, found)) in blocks.iter().zip(bench.members[m].chunks_exact(BLOCK)).enumerate() {
            let equal = match what {
                Expected::Data(number) => {
                    content(*number, &mut wanted);
                    found == wanted
                }
                Expected::P(hash) | Expected::Q(hash) => fnv1a(found) == *hash,
                Expected::Empty => found.iter().all(|&b| b == 0),
            };
            assert!(equal, "{}: member {m} block {i} is not {what:?} under {policy:?}", g.name);
        }
    }
}

/// What the map says of one block, in the file's words.
fn mapped(g: &GoldenCase, map: &LayoutMap, member: usize, block: u64) -> &'static str {
    let data_rows = |row: u64, parities: u64| {
        let data = g.tree.leaves() as u64 - parities;
        row * data * g.chunk_blocks < g.array_blocks
    };
    let parities = if let Tree::Parity { parities, .. } = g.tree { parities as u64 } else { 0 };
    match map.cells[member][(block / map.cell_sectors) as usize] {
        MapCell::Data { lba, .. } if lba + block % map.cell_sectors < g.array_blocks => "data",
        MapCell::P { row, .. } if data_rows(row, parities) => "p",
        MapCell::Q { row, .. } if data_rows(row, parities) => "q",
        _ => "empty",
    }
}

fn check_map(g: &GoldenCase, map: &LayoutMap) {
    for (m, blocks) in expected(g).iter().enumerate() {
        for (i, what) in blocks.iter().enumerate() {
            let found = mapped(g, map, m, i as u64);
            let agrees = match what {
                Expected::Data(number) => {
                    let cell = map.cells[m][i / map.cell_sectors as usize];
                    let array_block = number % REWRITE_BASE;
                    let first = array_block - i as u64 % map.cell_sectors;
                    cell == MapCell::Data { volume: 0, lba: first } && found == "data"
                }
                Expected::P(_) => found == "p",
                Expected::Q(_) => found == "q",
                Expected::Empty => found == "empty",
            };
            assert!(agrees, "{}: member {m} block {i} is {what:?}, the map says {found}", g.name);
        }
    }
}

#[test]
fn every_golden_file_has_an_array() {
    let files = std::fs::read_dir(folder().join("layout")).expect("the golden files").count();
    assert_eq!(files, index().len());
}

#[test]
fn plans_write_what_md_writes() {
    use ParityWrite::*;
    for g in index() {
        let strategies: &[_] =
            if g.rewrite { &[ReadModifyWrite, ReconstructWrite, FewestAccesses] } else { &[FewestAccesses] };
        for &parity_write in strategies {
            let policy = Policy { parity_write, ..Policy::default() };
            check_members(&g, &written(&g, policy), &policy);
        }
    }
}

#[test]
fn the_map_is_md_s() {
    for g in index() {
        let bench = Bench::with_sector(&g.tree, g.member_blocks, Policy::default(), BLOCK);
        let cell = if matches!(g.tree, Tree::Mirror { .. }) { 1 } else { g.chunk_blocks };
        let map = bench.layout.map(g.member_blocks / cell);
        assert_eq!(map.cell_sectors, cell, "{}", g.name);
        check_map(&g, &map);
    }
}
