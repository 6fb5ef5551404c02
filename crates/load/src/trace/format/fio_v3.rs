//! fio's log of I/O, version 3: as version 2, each line with its time in front, and without `wait`.
//!
//! The first line is `fio version 3 iolog`; the others are `time filename add|open|close` and
//! `time filename action offset length`. The time is since the beginning of the run; the manual does not say in what, fio
//! writes and reads microseconds.
//!
//! Reference: fio's manual, "Trace file format v3", and what fio 3.33 writes with `write_iolog`.

use super::fio_v2::{act, header};
use super::{ParseResult, RequestLine, State, NS_PER_US};
use crate::trace::fields::{times, words};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str =
    "'fio version 3 iolog', then: us filename add|open|close, or us filename read|write|sync|datasync|trim offset length";

pub(super) fn parse<'a>(line: &'a [u8], state: &mut State) -> ParseResult<'a> {
    if !state.has_header {
        return header(line, b"fio version 3 iolog", state);
    }
    let mut fields = words(line);
    let time_ns = fields.next().and_then(|field| times(field, NS_PER_US)).ok_or("no time in microseconds")?;
    let (Some(file), Some(action)) = (fields.next(), fields.next()) else { return Err("no file and action") };
    act(file, action, &mut fields, time_ns)
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) {
    let (file, us) = (line.file_name(), line.since_first_ns / NS_PER_US);
    if line.index == 0 {
        out.push_str("fio version 3 iolog\n");
    }
    if line.is_new_volume {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{us} {file} add\n{us} {file} open");
    }
    let kind = if line.record.kind == RequestKind::Read { "read" } else { "write" };
    let _ = writeln!(out, "{us} {file} {kind} {} {}", line.record.offset_bytes, line.record.bytes);
}

#[cfg(test)]
mod tests {
    use super::super::TraceLine;
    use super::*;

    #[test]
    fn what_fio_writes() {
        let mut state = State::default();
        let mut read = |line: &'static str| parse(line.as_bytes(), &mut state);
        for line in ["fio version 3 iolog", "37 /tmp/f1 add", "199 /tmp/f1 open"] {
            assert_eq!(read(line), Ok(TraceLine::Other), "{line}");
        }
        let Ok(TraceLine::Request(raw)) = read("205 /tmp/f1 read 61440 4096") else { panic!("no request") };
        assert_eq!((raw.time_ns, raw.volume, raw.kind), (205_000, &b"/tmp/f1"[..], RequestKind::Read));
        assert_eq!((raw.offset_bytes, raw.bytes), (61_440, 4096));
        assert_eq!(read("170607 /tmp/f1 close"), Ok(TraceLine::Other));
        assert_eq!(read("205 /tmp/f1 wait 10 0"), Err("no action that is known"));
        assert_eq!(read("/tmp/f1 read 0 4096"), Err("no time in microseconds"));
        assert_eq!(read("205 /tmp/f1"), Err("no file and action"));
    }
}
