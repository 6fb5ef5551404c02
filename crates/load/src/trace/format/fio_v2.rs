//! fio's log of I/O, version 2.
//!
//! The first line is `fio version 2 iolog`; the others are `filename add|open|close` and `filename action offset length`,
//! bytes, with the actions `read`, `write`, `sync`, `datasync`, `trim` and `wait`. Requests have no times of their own: a
//! `wait` lets its offset in microseconds pass, relative to the last one, and what follows is issued then. In a log without
//! `wait` all is issued at once; replay it at a depth.
//!
//! Reference: fio's manual, "Trace file format v2". (fio 3.33 itself reads the number of a `wait` as milliseconds since its
//! own start; the manual is followed here.)

use super::{ParseResult, RawRequest, RequestLine, State, TraceLine, NS_PER_US};
use crate::trace::fields::{number, times, words};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str =
    "'fio version 2 iolog', then: filename add|open|close, or filename read|write|sync|datasync|trim|wait offset length";

pub(super) fn parse<'a>(line: &'a [u8], state: &mut State) -> ParseResult<'a> {
    if !state.has_header {
        return header(line, b"fio version 2 iolog", state);
    }
    let mut fields = words(line);
    let (file, action) = (fields.next().unwrap_or_default(), fields.next().ok_or("no action")?);
    if action == b"wait" {
        let wait_ns =
            fields.next().and_then(|field| times(field, NS_PER_US)).ok_or("no time to wait, in microseconds")?;
        state.clock_ns = state.clock_ns.checked_add(wait_ns).ok_or("waits beyond 2^64 ns")?;
        return Ok(TraceLine::Other);
    }
    act(file, action, &mut fields, state.clock_ns)
}

/// The line that a log of a version begins with.
pub(super) fn header<'a>(line: &'a [u8], wanted: &[u8], state: &mut State) -> ParseResult<'a> {
    if line.trim_ascii() != wanted {
        return Err("does not begin with fio's line of the version");
    }
    state.has_header = true;
    Ok(TraceLine::Other)
}

/// What an action asks for, as both versions have it.
pub(super) fn act<'a>(
    file: &'a [u8],
    action: &[u8],
    fields: &mut impl Iterator<Item = &'a [u8]>,
    time_ns: u64,
) -> ParseResult<'a> {
    let kind = match action {
        b"read" => RequestKind::Read,
        b"write" => RequestKind::Write,
        b"add" | b"open" | b"close" | b"sync" | b"datasync" | b"trim" => return Ok(TraceLine::Other),
        _ => return Err("no action that is known"),
    };
    Ok(TraceLine::Request(RawRequest {
        time_ns,
        volume: file,
        kind,
        offset_bytes: fields.next().and_then(number).ok_or("no offset in bytes")?,
        bytes: fields.next().and_then(number).ok_or("no length in bytes")?,
        response_ns: None,
    }))
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) {
    let (file, us) = (line.file_name(), line.since_first_ns / NS_PER_US);
    if line.index == 0 {
        out.push_str("fio version 2 iolog\n");
    }
    if line.is_new_volume {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{file} add\n{file} open");
    }
    let wait_us = us - line.previous_since_first_ns / NS_PER_US;
    if wait_us > 0 {
        let _ = writeln!(out, "{file} wait {wait_us} 0");
    }
    let kind = if line.record.kind == RequestKind::Read { "read" } else { "write" };
    let _ = writeln!(out, "{file} {kind} {} {}", line.record.offset_bytes, line.record.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_add_up() {
        let mut state = State::default();
        let mut read = |line: &'static str| parse(line.as_bytes(), &mut state);
        assert_eq!(read("fio version 2 iolog"), Ok(TraceLine::Other));
        for line in ["/dev/sda add", "/dev/sda open", "/dev/sda wait 250 0", "/dev/sda wait 750 0", "/dev/sda sync 0 0"]
        {
            assert_eq!(read(line), Ok(TraceLine::Other), "{line}");
        }
        let Ok(TraceLine::Request(raw)) = read("/dev/sda write 61440 4096") else { panic!("no request") };
        assert_eq!((raw.time_ns, raw.volume, raw.offset_bytes, raw.bytes), (1_000_000, &b"/dev/sda"[..], 61_440, 4096));
        assert_eq!(raw.kind, RequestKind::Write);
        assert_eq!(read("/dev/sda trim 0 4096"), Ok(TraceLine::Other));
        assert_eq!(read("/dev/sda"), Err("no action"));
        assert_eq!(read("/dev/sda seek 0 1"), Err("no action that is known"));
        assert_eq!(read("/dev/sda read 0"), Err("no length in bytes"));
        assert_eq!(read("/dev/sda wait soon 0"), Err("no time to wait, in microseconds"));
    }

    #[test]
    fn the_version_is_asked_for() {
        for line in ["fio version 3 iolog", "/dev/sda add", "fio iolog"] {
            assert!(parse(line.as_bytes(), &mut State::default()).is_err(), "{line}");
        }
    }
}
