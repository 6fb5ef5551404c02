//! Formats of traces, one file each.
//!
//! Purpose: what a line of each format means. To add one: a file with `ACCEPTED`, `parse` and `write`, a variant here and a
//! line in each `match` of [`Format`], a word in the study schema.
//!
//! Invariant: a format reads one line at a time, and knows of the lines before only what [`State`] keeps.

mod alibaba;
mod blkparse;
mod disksim;
mod disksim_validation;
mod fio_v2;
mod fio_v3;
mod msr;
mod spc;
mod tencent;

use super::writer::RequestLine;
use raidlab_types::RequestKind;
use serde::{Deserialize, Serialize};

/// Sectors that formats count in, whatever the disk has.
pub(crate) const SECTOR_BYTES: u64 = 512;
pub(crate) const NS_PER_US: u64 = 1_000;
pub(crate) const NS_PER_MS: u64 = 1_000_000;
pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceLine<'a> {
    Request(RawRequest<'a>),
    /// Nothing that moves data: a header, another event, a flush.
    Other,
}

/// A request with its volume's name as it stands in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawRequest<'a> {
    pub(crate) time_ns: u64,
    pub(crate) volume: &'a [u8],
    pub(crate) kind: RequestKind,
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) response_ns: Option<u64>,
}

/// What formats know of the lines before.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// Number of this line, from 1.
    pub(crate) line: u64,
    /// The time so far, in formats that give only what lies between requests.
    pub(crate) clock_ns: u64,
    /// Whether the header was there, in formats that need one.
    pub(crate) has_header: bool,
    /// Whether all that follows is a summary.
    pub(crate) is_over: bool,
}

/// What a line says, or what is wrong with it.
pub(crate) type ParseResult<'a> = Result<TraceLine<'a>, &'static str>;

/// The formats that can be read and written; a name here is a name in a cell, a study and on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Microsoft Research Cambridge, CSV.
    Msr,
    /// Storage Performance Council, ASCII.
    Spc,
    /// The text that `blkparse` prints.
    Blkparse,
    /// fio's log of I/O, version 2: without times, but for lines that wait.
    FioV2,
    /// fio's log of I/O, version 3.
    FioV3,
    /// DiskSim's ASCII.
    Disksim,
    /// DiskSim's validation format: what a real disk took, one request at a time.
    DisksimValidation,
    /// Alibaba's block traces of 2020, CSV.
    Alibaba,
    /// Tencent's block storage traces of 2018, CSV.
    Tencent,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 9] = [
        Format::Msr,
        Format::Spc,
        Format::Blkparse,
        Format::FioV2,
        Format::FioV3,
        Format::Disksim,
        Format::DisksimValidation,
        Format::Alibaba,
        Format::Tencent,
    ];

    /// Its name, what a line of it looks like, and the shortest time that its stamps tell apart, in ns.
    fn facts(self) -> (&'static str, &'static str, u64) {
        match self {
            Format::Msr => ("msr", msr::ACCEPTED, msr::TICK_NS),
            Format::Spc => ("spc", spc::ACCEPTED, 1),
            Format::Blkparse => ("blkparse", blkparse::ACCEPTED, 1),
            Format::FioV2 => ("fio_v2", fio_v2::ACCEPTED, NS_PER_US),
            Format::FioV3 => ("fio_v3", fio_v3::ACCEPTED, NS_PER_US),
            Format::Disksim => ("disksim", disksim::ACCEPTED, 1),
            Format::DisksimValidation => ("disksim_validation", disksim_validation::ACCEPTED, 1),
            Format::Alibaba => ("alibaba", alibaba::ACCEPTED, NS_PER_US),
            Format::Tencent => ("tencent", tencent::ACCEPTED, NS_PER_S),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// What a line of it looks like.
    pub fn accepted(self) -> &'static str {
        self.facts().1
    }

    /// The shortest time its stamps tell apart.
    pub fn resolution_ns(self) -> u64 {
        self.facts().2
    }

    #[inline]
    pub(crate) fn parse<'a>(self, line: &'a [u8], state: &mut State) -> ParseResult<'a> {
        match self {
            Format::Msr => msr::parse(line, state),
            Format::Spc => spc::parse(line),
            Format::Blkparse => blkparse::parse(line, state),
            Format::FioV2 => fio_v2::parse(line, state),
            Format::FioV3 => fio_v3::parse(line, state),
            Format::Disksim => disksim::parse(line),
            Format::DisksimValidation => disksim_validation::parse(line, state),
            Format::Alibaba => alibaba::parse(line, state),
            Format::Tencent => tencent::parse(line, state),
        }
    }

    /// Appends the line, or lines, of a request.
    pub(crate) fn write(self, line: &RequestLine<'_>, out: &mut String) -> Result<(), &'static str> {
        match self {
            Format::Msr => msr::write(line, out),
            Format::Spc => spc::write(line, out)?,
            Format::Blkparse => blkparse::write(line, out)?,
            Format::FioV2 => fio_v2::write(line, out),
            Format::FioV3 => fio_v3::write(line, out),
            Format::Disksim => disksim::write(line, out)?,
            Format::DisksimValidation => return Err(disksim_validation::NOT_WRITTEN),
            Format::Alibaba => alibaba::write(line, out),
            Format::Tencent => tencent::write(line, out)?,
        }
        Ok(())
    }
}

/// Whether the first line of a CSV file is its header: it begins with the name of its first column.
pub(crate) fn is_header(line: &[u8], state: &State, first_column: &str) -> bool {
    let begins =
        line.get(..first_column.len()).is_some_and(|start| start.eq_ignore_ascii_case(first_column.as_bytes()));
    state.line == 1 && begins
}

#[cfg(test)]
mod tests {
    use super::super::guess;
    use super::*;

    #[test]
    fn names_are_those_of_the_cell() {
        for format in Format::ALL {
            assert_eq!(serde_json::to_string(&format).unwrap(), format!("\"{}\"", format.name()));
        }
    }

    #[test]
    fn formats_are_told_apart_by_their_lines() {
        for (text, format) in [
            ("128166372003061629,usr,0,Read,10995532800,16384,30123\r\n", Format::Msr),
            ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n1,usr,0,Read,0,16384,3\n", Format::Msr),
            ("0,20941264,8192,W,0.551706\n", Format::Spc),
            ("  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n", Format::Blkparse),
            ("fio version 2 iolog\n/dev/sda add\n", Format::FioV2),
            ("fio version 3 iolog\n37 /tmp/f add\n", Format::FioV3),
            ("13.191135 30 0 5 1\n17.829285 20 576560 6 1\n", Format::Disksim),
            ("R Hit 547163 12 18228.000000 20935.440364\n", Format::DisksimValidation),
            ("419,W,8792731648,16384,1577808144360767\n725,R,591103", Format::Alibaba),
            ("1538323200,12910952,128,0,1063\n", Format::Tencent),
        ] {
            assert_eq!(guess(text.as_bytes()), Some(format), "{text}");
        }
        for text in ["", "\n\n", "hello world\n", "1,2,3\n"] {
            assert_eq!(guess(text.as_bytes()), None, "{text}");
        }
    }
}
