//! The CSV of Tencent's block storage traces of 2018.
//!
//! `Timestamp,Offset,Size,IOType,VolumeID`: *seconds* since 1970, sectors of 512 bytes, sectors, 0 to read and 1 to write, the
//! virtual volume. With or without a header. All requests of a second have the same time, so an open replay offers them in a
//! burst; what it says of queues is about these bursts.
//!
//! Reference: Y. Zhang et al., *OSCA: An Online-Model Based Cache Allocation Scheme in Cloud Block Storage Systems*, USENIX
//! ATC 2020; the README of the traces at SNIA IOTTA, set 27917.

use super::{is_header, ParseResult, RawRequest, RequestLine, State, TraceLine, NS_PER_S, SECTOR_BYTES};
use crate::trace::fields::{self, by_comma, exactly, number, times};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str = "timestamp,offset,size,0|1,volume (seconds, sectors of 512 bytes, 0 reads)";

#[inline]
pub(super) fn parse<'a>(line: &'a [u8], state: &State) -> ParseResult<'a> {
    let [time, offset, size, kind, volume] = exactly(by_comma(line)).ok_or("not five fields")?;
    if is_header(line, state, "timestamp") {
        return Ok(TraceLine::Other);
    }
    if number(volume).is_none() {
        return Err("no number of a volume");
    }
    Ok(TraceLine::Request(RawRequest {
        time_ns: times(time, NS_PER_S).ok_or("no time in seconds")?,
        volume,
        kind: fields::kind(kind, &[b"0"], &[b"1"]).ok_or("neither 0 (read) nor 1 (write)")?,
        offset_bytes: times(offset, SECTOR_BYTES).ok_or("no offset in sectors")?,
        bytes: times(size, SECTOR_BYTES).ok_or("no size in sectors")?,
        response_ns: None,
    }))
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) -> Result<(), &'static str> {
    let (first, count) = line.sectors()?;
    let (s, volume, kind) =
        (line.record.time_ns / NS_PER_S, line.number_of_volume(), u32::from(line.record.kind != RequestKind::Read));
    // Writing to a string does not fail.
    let _ = writeln!(out, "{s},{first},{count},{kind},{volume}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_traces() {
        let Ok(TraceLine::Request(raw)) = parse(b"1538323200,6338688,8,1,1627", &State::default()) else {
            panic!("no request")
        };
        assert_eq!((raw.volume, raw.kind, raw.time_ns), (&b"1627"[..], RequestKind::Write, 1_538_323_200_000_000_000));
        assert_eq!((raw.offset_bytes, raw.bytes), (6_338_688 * 512, 4096));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |line: &'static str| parse(line.as_bytes(), &State { line: 2, ..State::default() }).unwrap_err();
        assert_eq!(fault("1,0,8,0"), "not five fields");
        assert_eq!(fault("1,0,8,2,7"), "neither 0 (read) nor 1 (write)");
        assert_eq!(fault("1,0,8,0,x"), "no number of a volume");
        assert_eq!(fault("1.5,0,8,0,7"), "no time in seconds");
        assert_eq!(fault("1,x,8,0,7"), "no offset in sectors");
        assert_eq!(fault("1,0,,0,7"), "no size in sectors");
    }
}
