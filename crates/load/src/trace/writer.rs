//! A trace in another format.
//!
//! Purpose: `raidlab trace convert`, and a check on the readers: what is written is read back as the same records.
//!
//! Invariants:
//! - Only what the target format can say is lost: times below its resolution, names where it has numbers, response times
//!   where it has none. A request that it cannot say at all is an error.
//! - Times that a format counts from the beginning count from the first request written.

use super::fields::number;
use super::format::{Format, SECTOR_BYTES};
use super::{Names, Record, TraceError};

/// A request as formats write it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLine<'a> {
    /// How many were written before it.
    pub(crate) index: u64,
    pub(crate) record: &'a Record,
    /// Time since the first request, and that of the request before.
    pub(crate) since_first_ns: u64,
    pub(crate) previous_since_first_ns: u64,
    /// Name of its volume, and whether it is the first of it.
    pub(crate) name: &'a str,
    pub(crate) is_new_volume: bool,
}

impl RequestLine<'_> {
    /// First sector and sectors of 512 bytes.
    pub(crate) fn sectors(&self) -> Result<(u64, u64), &'static str> {
        let Record { offset_bytes, bytes, .. } = self.record;
        if !offset_bytes.is_multiple_of(SECTOR_BYTES) || !bytes.is_multiple_of(SECTOR_BYTES) {
            return Err("is not whole sectors of 512 bytes");
        }
        Ok((offset_bytes / SECTOR_BYTES, bytes / SECTOR_BYTES))
    }

    /// The volume as a number: its name where that is one, else its place in the order of appearance.
    pub(crate) fn number_of_volume(&self) -> u64 {
        number(self.name.as_bytes()).unwrap_or(u64::from(self.record.volume))
    }

    /// The volume as an absolute path.
    pub(crate) fn file_name(&self) -> String {
        let word: String = self.name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        if word.starts_with('/') {
            word
        } else {
            format!("/{word}")
        }
    }
}

/// Writes records in one format.
#[derive(Debug, Clone)]
pub struct Writer {
    format: Format,
    index: u64,
    first_ns: u64,
    previous_since_first_ns: u64,
    volumes: u32,
}

impl Writer {
    /// A writer of an empty file.
    pub fn new(format: Format) -> Writer {
        Writer { format, index: 0, first_ns: 0, previous_since_first_ns: 0, volumes: 0 }
    }

    /// Appends the lines of a request; `names` are the volumes of the trace it is from, which `file` calls in errors.
    pub fn write(&mut self, record: &Record, names: &Names, file: &str, out: &mut String) -> Result<(), TraceError> {
        if self.index == 0 {
            self.first_ns = record.time_ns;
        }
        let since_first_ns = record.time_ns.saturating_sub(self.first_ns).max(self.previous_since_first_ns);
        let line = RequestLine {
            index: self.index,
            record,
            since_first_ns,
            previous_since_first_ns: self.previous_since_first_ns,
            name: names.name(record.volume),
            is_new_volume: record.volume >= self.volumes,
        };
        self.format.write(&line, out).map_err(|message| {
            let text = format!("{} bytes at {}", record.bytes, record.offset_bytes);
            let accepted = format!("another format than {}", self.format.name());
            TraceError::of_line(file, record.line, text.as_bytes(), message, &accepted)
        })?;
        self.index += 1;
        self.previous_since_first_ns = since_first_ns;
        self.volumes = self.volumes.max(record.volume + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parser;
    use super::*;
    use proptest::prelude::*;
    use raidlab_types::RequestKind;

    /// Requests of up to five volumes in order of time, at whole sectors and multiples of a second's resolution.
    fn records(resolution_ns: u64) -> impl Strategy<Value = Vec<(u64, u32, bool, u64, u64)>> {
        let one = (0..5u64, 0..5u32, any::<bool>(), 0..1u64 << 40, 1..1u64 << 12);
        prop::collection::vec(one, 1..40).prop_map(move |rows| {
            let mut time = 0;
            let mut absolute = |gap: u64| {
                time += gap * resolution_ns;
                time
            };
            rows.into_iter().map(|(gap, v, reads, lba, n)| (absolute(gap), v, reads, lba * 512, n * 512)).collect()
        })
    }

    fn round_trip(format: Format, rows: &[(u64, u32, bool, u64, u64)]) {
        let (mut names, mut writer, mut text) = (Names::default(), Writer::new(format), String::new());
        let mut wanted = Vec::new();
        for (i, &(time_ns, volume, reads, offset_bytes, bytes)) in rows.iter().enumerate() {
            let record = Record {
                line: i as u64,
                time_ns,
                // Numbers go by first appearance, as in any trace.
                volume: names.number(volume.to_string().as_bytes()),
                kind: if reads { RequestKind::Read } else { RequestKind::Write },
                offset_bytes,
                bytes,
                response_ns: None,
            };
            writer.write(&record, &names, "test", &mut text).unwrap();
            wanted.push(record);
        }
        let (mut parser, mut found) = (Parser::new(format, "test"), Vec::new());
        parser.feed(text.as_bytes(), &mut found).unwrap();
        parser.finish(&mut found).unwrap();
        assert_eq!(found.len(), wanted.len(), "{}", format.name());
        for (found, wanted) in found.iter().zip(&wanted) {
            // Times from the beginning, or absolute ones: either way the gaps are those of the trace.
            let since_first_ns = wanted.time_ns - rows[0].0;
            assert!([wanted.time_ns, since_first_ns].contains(&found.time_ns), "{}", format.name());
            let of = |r: &Record| (r.volume, r.kind, r.offset_bytes, r.bytes);
            assert_eq!(of(found), of(wanted), "{}", format.name());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(rows in records(1_000_000_000)) {
            for format in Format::ALL.into_iter().filter(|&format| format != Format::DisksimValidation) {
                round_trip(format, &rows);
            }
        }

        #[test]
        fn times_are_kept_to_the_resolution(rows in records(1)) {
            for format in [Format::Spc, Format::Blkparse, Format::Disksim] {
                round_trip(format, &rows);
            }
        }
    }

    #[test]
    fn what_a_format_cannot_say_is_refused() {
        let mut names = Names::default();
        names.number(b"0");
        let kind = RequestKind::Read;
        let record = Record { line: 3, time_ns: 0, volume: 0, kind, offset_bytes: 100, bytes: 512, response_ns: None };
        let mut out = String::new();
        for format in [Format::Spc, Format::Blkparse, Format::Disksim, Format::Tencent, Format::DisksimValidation] {
            let error = Writer::new(format).write(&record, &names, "a.csv", &mut out).unwrap_err();
            assert!(error.to_string().starts_with("a.csv:3: '512 bytes at 100': "), "{error}");
        }
        assert!(out.is_empty());
    }
}
