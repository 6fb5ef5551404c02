//! The CSV of the Microsoft Research Cambridge traces.
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: the time of issue as a Windows file time (ticks of 100 ns
//! since 1601), host and disk (together the volume, `usr.1`), `Read` or `Write`, offset and size in bytes, and the response
//! time in the same ticks.
//!
//! Reference: D. Narayanan, A. Donnelly, A. Rowstron, *Write Off-Loading: Practical Power Management for Enterprise
//! Storage*, FAST 2008; the README of the traces at SNIA IOTTA, set 388.

use super::{is_header, ParseResult, RawRequest, RequestLine, State, TraceLine};
use crate::trace::fields::{self, by_comma, exactly, number, times};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str = "timestamp,hostname,disk,Read|Write,offset,size,response (ticks of 100 ns, bytes)";
/// What time stamps count.
pub(super) const TICK_NS: u64 = 100;

#[inline]
pub(super) fn parse<'a>(line: &'a [u8], state: &State) -> ParseResult<'a> {
    let [time, host, disk, kind, offset, size, response] = exactly(by_comma(line)).ok_or("not seven fields")?;
    if is_header(line, state, "timestamp") {
        return Ok(TraceLine::Other);
    }
    if host.is_empty() || number(disk).is_none() {
        return Err("no host and number of a disk");
    }
    Ok(TraceLine::Request(RawRequest {
        time_ns: times(time, TICK_NS).ok_or("no time in ticks of 100 ns")?,
        volume: between(line, host, disk),
        kind: fields::kind(kind, &[b"Read", b"read"], &[b"Write", b"write"]).ok_or("neither Read nor Write")?,
        offset_bytes: number(offset).ok_or("no offset in bytes")?,
        bytes: number(size).ok_or("no size in bytes")?,
        response_ns: Some(times(response, TICK_NS).ok_or("no response time in ticks of 100 ns")?),
    }))
}

/// The part of the line from the beginning of one field to the end of another.
fn between<'a>(line: &'a [u8], first: &[u8], last: &[u8]) -> &'a [u8] {
    let at = |field: &[u8]| field.as_ptr() as usize - line.as_ptr() as usize;
    &line[at(first)..at(last) + last.len()]
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) {
    let (host, disk) = match line.name.rsplit_once('.') {
        Some((host, disk)) if number(disk.as_bytes()).is_some() && !host.is_empty() => (host, disk),
        _ => (line.name, "0"),
    };
    let kind = if line.record.kind == RequestKind::Read { "Read" } else { "Write" };
    let (time, response) = (line.record.time_ns / TICK_NS, line.record.response_ns.unwrap_or(0) / TICK_NS);
    // Writing to a string does not fail.
    let _ = writeln!(out, "{time},{host},{disk},{kind},{},{},{response}", line.record.offset_bytes, line.record.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_traces() {
        let line = b"128166372003061629,usr,0,Read,10995532800,16384,30123";
        let Ok(TraceLine::Request(raw)) = parse(line, &State::default()) else { panic!("no request") };
        assert_eq!((raw.time_ns, raw.volume), (12_816_637_200_306_162_900, &b"usr,0"[..]));
        assert_eq!((raw.kind, raw.offset_bytes, raw.bytes), (RequestKind::Read, 10_995_532_800, 16_384));
        assert_eq!(raw.response_ns, Some(3_012_300));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |line: &'static str| parse(line.as_bytes(), &State { line: 2, ..State::default() }).unwrap_err();
        assert_eq!(fault("1,usr,0,Read,0,512"), "not seven fields");
        assert_eq!(fault("1,usr,0,Read,0,512,1,1"), "not seven fields");
        assert_eq!(fault("1,usr,0,Trim,0,512,1"), "neither Read nor Write");
        assert_eq!(fault("1,usr,x,Read,0,512,1"), "no host and number of a disk");
        assert_eq!(fault("-1,usr,0,Read,0,512,1"), "no time in ticks of 100 ns");
        assert_eq!(fault("1,usr,0,Read,0.5,512,1"), "no offset in bytes");
        assert_eq!(fault("1,usr,0,Read,0,-512,1"), "no size in bytes");
        assert_eq!(fault("1,usr,0,Read,0,512,"), "no response time in ticks of 100 ns");
    }
}
