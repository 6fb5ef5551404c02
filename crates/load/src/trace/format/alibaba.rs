//! The CSV of Alibaba's block traces of 2020.
//!
//! `device_id,opcode,offset,length,timestamp`: the virtual disk, `R` or `W`, bytes, bytes, microseconds since 1970. With or
//! without a header.
//!
//! Reference: J. Li et al., *An In-Depth Analysis of Cloud Block Storage Workloads in Large-Scale Production*, IISWC 2020;
//! the README of the traces (alibaba/block-traces).

use super::{is_header, ParseResult, RawRequest, RequestLine, State, TraceLine, NS_PER_US};
use crate::trace::fields::{self, by_comma, exactly, number, times};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str = "device_id,R|W,offset,length,timestamp (bytes, microseconds)";

#[inline]
pub(super) fn parse<'a>(line: &'a [u8], state: &State) -> ParseResult<'a> {
    let [device, kind, offset, length, time] = exactly(by_comma(line)).ok_or("not five fields")?;
    if is_header(line, state, "device_id") {
        return Ok(TraceLine::Other);
    }
    if number(device).is_none() {
        return Err("no number of a device");
    }
    Ok(TraceLine::Request(RawRequest {
        time_ns: times(time, NS_PER_US).ok_or("no time in microseconds")?,
        volume: device,
        kind: fields::kind(kind, &[b"R", b"r"], &[b"W", b"w"]).ok_or("neither R nor W")?,
        offset_bytes: number(offset).ok_or("no offset in bytes")?,
        bytes: number(length).ok_or("no length in bytes")?,
        response_ns: None,
    }))
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) {
    let kind = if line.record.kind == RequestKind::Read { 'R' } else { 'W' };
    let (device, us) = (line.number_of_volume(), line.record.time_ns / NS_PER_US);
    // Writing to a string does not fail.
    let _ = writeln!(out, "{device},{kind},{},{},{us}", line.record.offset_bytes, line.record.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_traces() {
        let Ok(TraceLine::Request(raw)) = parse(b"419,W,8792731648,16384,1577808144360767", &State::default()) else {
            panic!("no request")
        };
        assert_eq!((raw.volume, raw.kind), (&b"419"[..], RequestKind::Write));
        assert_eq!((raw.offset_bytes, raw.bytes, raw.time_ns), (8_792_731_648, 16_384, 1_577_808_144_360_767_000));
    }

    #[test]
    fn a_header_stands_on_the_first_line_only() {
        let header = b"device_id,opcode,offset,length,timestamp";
        assert_eq!(parse(header, &State { line: 1, ..State::default() }), Ok(TraceLine::Other));
        assert_eq!(parse(header, &State { line: 2, ..State::default() }), Err("no number of a device"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |line: &'static str| parse(line.as_bytes(), &State::default()).unwrap_err();
        assert_eq!(fault("1,R,0,4096"), "not five fields");
        assert_eq!(fault("1,X,0,4096,1"), "neither R nor W");
        assert_eq!(fault("1,R,-1,4096,1"), "no offset in bytes");
        assert_eq!(fault("1,R,0,4.5,1"), "no length in bytes");
        assert_eq!(fault("1,R,0,4096,1.5"), "no time in microseconds");
    }
}
