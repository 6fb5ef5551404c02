//! A map as the textbooks draw it: a column a member, a row a chunk; `3` is data chunk 3, `P1` and `Q1` the parities of
//! stripe 1, `S0` a chunk of the first distributed spare, `B3` chunk 3 of the second of several volumes, `-` what the array
//! does not use.
//!
//! Invariant: no line is longer than 80 columns; members that do not fit go into further blocks below.

use super::{LayoutMap, MapCell};
use std::fmt;

const LINE: usize = 80;
const TITLE: &str = "member";

impl LayoutMap {
    /// The words of one cell. Data is counted in cells; a cell that begins within one (levels of odd chunks nested in each
    /// other) adds the sectors it begins after: `3+1`.
    fn label(&self, cell: MapCell, several_volumes: bool) -> String {
        let letter = |volume: u32| match several_volumes {
            true => char::from_u32(u32::from('A') + volume % 26).unwrap_or('?').to_string(),
            false => String::new(),
        };
        match cell {
            MapCell::Data { volume, lba } => match (lba / self.cell_sectors, lba % self.cell_sectors) {
                (chunk, 0) => format!("{}{chunk}", letter(volume)),
                (chunk, more) => format!("{}{chunk}+{more}", letter(volume)),
            },
            MapCell::P { row, .. } => format!("P{row}"),
            MapCell::Q { row, .. } => format!("Q{row}"),
            MapCell::Spare { number } => format!("S{number}"),
            MapCell::Unused => "-".into(),
        }
    }

    /// Every member's column, its number first.
    fn columns(&self) -> Vec<Vec<String>> {
        let second = |c: &MapCell| matches!(c, MapCell::Data { volume, .. } if *volume > 0);
        let several = self.cells.iter().flatten().any(second);
        let column = |(m, cells): (usize, &Vec<MapCell>)| {
            std::iter::once(m.to_string()).chain(cells.iter().map(|&c| self.label(c, several))).collect()
        };
        self.cells.iter().enumerate().map(column).collect()
    }
}

impl fmt::Display for LayoutMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        let widest = columns.iter().flatten().map(String::len).max().unwrap_or(1);
        let width = widest + 2;
        let in_block = ((LINE - TITLE.len()) / width).max(1);
        for (b, block) in columns.chunks(in_block).enumerate() {
            if b > 0 {
                writeln!(f)?;
            }
            for row in 0..block[0].len() {
                write!(f, "{:6}", if row == 0 { TITLE } else { "" })?;
                block.iter().try_for_each(|column| write!(f, "{:>width$}", column[row]))?;
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Layout, Rotation, Tree};

    fn drawn(tree: &Tree, rows: u64) -> String {
        Layout::new(tree, &vec![rows * 4; tree.leaves()], 1).expect("compiles").map(rows).to_string()
    }

    fn raid5(rotation: Rotation) -> String {
        drawn(&Tree::parity(1, 4, 4, rotation), 4)
    }

    fn lines(drawing: &str) -> Vec<String> {
        drawing.lines().skip(1).map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn raid5_as_it_looks() {
        let expected = "\
member   0   1   2   3
         0   1   2  P0
         4   5  P1   3
         8  P2   6   7
        P3   9  10  11
";
        assert_eq!(raid5(Rotation::LeftSymmetric), expected);
    }

    #[test]
    fn raid5_rotations() {
        let of = |rotation| lines(&raid5(rotation));
        assert_eq!(of(Rotation::LeftAsymmetric), ["0 1 2 P0", "3 4 P1 5", "6 P2 7 8", "P3 9 10 11"]);
        assert_eq!(of(Rotation::RightSymmetric), ["P0 0 1 2", "5 P1 3 4", "7 8 P2 6", "9 10 11 P3"]);
        assert_eq!(of(Rotation::RightAsymmetric), ["P0 0 1 2", "3 P1 4 5", "6 7 P2 8", "9 10 11 P3"]);
        assert_eq!(of(Rotation::ParityFirst), ["P0 0 1 2", "P1 3 4 5", "P2 6 7 8", "P3 9 10 11"]);
        assert_eq!(of(Rotation::ParityLast), ["0 1 2 P0", "3 4 5 P1", "6 7 8 P2", "9 10 11 P3"]);
    }

    #[test]
    fn raid6_has_q_behind_p() {
        let tree = Tree::parity(2, 4, 4, Rotation::LeftSymmetric);
        assert_eq!(lines(&drawn(&tree, 4)), ["Q0 0 1 P0", "2 3 P1 Q1", "5 P2 Q2 4", "P3 Q3 6 7"]);
    }

    #[test]
    fn distributed_spares_have_a_chunk_in_every_row() {
        let tree = Tree::parse("declustered(7, width=3, spares=1, chunk=4B)").expect("a tree");
        let rows = lines(&drawn(&tree, 8));
        assert_eq!(rows[..2], ["3 S0 0 P0 2 1 P1", "P3 7 S0 4 P2 6 5"]);
        assert!(rows.iter().all(|row| row.split(' ').filter(|cell| *cell == "S0").count() == 1), "{rows:?}");
    }

    #[test]
    fn raid10_and_raid50() {
        assert_eq!(lines(&drawn(&Tree::raid10(2, 4), 2)), ["0 0 1 1", "2 2 3 3"]);
        let raid50 = Tree::striped_parity(1, 2, 3, 4, Rotation::LeftSymmetric);
        assert_eq!(lines(&drawn(&raid50, 3)), ["0 1 P0 2 3 P0", "5 P1 4 7 P1 6", "P2 8 9 P2 10 11"]);
    }

    #[test]
    fn volumes_have_letters_and_what_is_not_used_a_dash() {
        let pair = |n| Tree::raid0(n, 4);
        let tree = Tree::Independent { children: vec![pair(2), pair(1)] };
        let layout = Layout::new(&tree, &[8, 4, 8], 1).expect("compiles");
        assert_eq!(lines(&layout.map(2).to_string()), ["A0 A1 B0", "- - B1"]);
    }

    #[test]
    fn many_members_go_into_blocks_of_eighty_columns() {
        let drawing = drawn(&Tree::raid0(50, 4), 30);
        assert!(drawing.lines().all(|l| l.len() <= 80), "{drawing}");
        assert_eq!(drawing.lines().filter(|l| l.starts_with("member")).count(), 5);
        assert_eq!(drawing.lines().filter(|l| l.trim().is_empty()).count(), 4);
        assert!(drawing.contains(" 1499\n"), "the last chunk of 30 rows of 50:\n{drawing}");
    }
}
