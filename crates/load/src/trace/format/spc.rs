//! The ASCII format of the Storage Performance Council, in which the UMass repository has its traces of OLTP and search.
//!
//! `ASU,LBA,Size,Opcode,Timestamp`, and fields of the tracer's own after them: the application's unit (the volume), its
//! block (of 512 bytes), the size in *bytes*, `R` or `W` in either case, seconds since the beginning as a decimal. White
//! space around a field means nothing. The size may be 0; such requests are counted, and not offered.
//!
//! Reference: Storage Performance Council, *SPC Trace File Format Specification*, revision 1.0.1, 2002. It leaves the size of
//! a block to the description of the trace; the published ones have 512 bytes.

use super::{ParseResult, RawRequest, RequestLine, TraceLine, NS_PER_S, SECTOR_BYTES};
use crate::trace::fields::{self, by_comma, decimal, first, number, times};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str = "ASU,LBA,size,R|W,seconds (LBA in blocks of 512 bytes, size in bytes)";

#[inline]
pub(super) fn parse(line: &[u8]) -> ParseResult<'_> {
    let [unit, lba, size, kind, time] = first(&mut by_comma(line)).ok_or("fewer than five fields")?;
    if number(unit).is_none() {
        return Err("no number of a unit");
    }
    Ok(TraceLine::Request(RawRequest {
        time_ns: decimal(time, NS_PER_S).ok_or("no time in seconds")?,
        volume: unit,
        kind: fields::kind(kind, &[b"R", b"r"], &[b"W", b"w"]).ok_or("neither R nor W")?,
        offset_bytes: times(lba, SECTOR_BYTES).ok_or("no block")?,
        bytes: number(size).ok_or("no size in bytes")?,
        response_ns: None,
    }))
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) -> Result<(), &'static str> {
    if !line.record.offset_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err("does not begin at a block of 512 bytes");
    }
    let kind = if line.record.kind == RequestKind::Read { 'R' } else { 'W' };
    let (unit, lba, at) = (line.number_of_volume(), line.record.offset_bytes / SECTOR_BYTES, line.since_first_ns);
    // Writing to a string does not fail.
    let _ = writeln!(out, "{unit},{lba},{},{kind},{}.{:09}", line.record.bytes, at / NS_PER_S, at % NS_PER_S);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_specification() {
        for (line, volume, offset, bytes, kind, time_ns) in [
            ("0,20941264,8192,W,0.551706", "0", 20_941_264 * 512, 8192, RequestKind::Write, 551_706_000),
            ("0,303567,3584,w,0.000000", "0", 303_567 * 512, 3584, RequestKind::Write, 0),
            (" 1 , 55596 , 3072 , r , 0.078643 , 17, x", "1", 55_596 * 512, 3072, RequestKind::Read, 78_643_000),
        ] {
            let Ok(TraceLine::Request(raw)) = parse(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(raw.volume, volume.as_bytes());
            assert_eq!((raw.offset_bytes, raw.bytes, raw.kind, raw.time_ns), (offset, bytes, kind, time_ns), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |line: &'static str| parse(line.as_bytes()).unwrap_err();
        assert_eq!(fault("0,1,512,R"), "fewer than five fields");
        assert_eq!(fault("a,1,512,R,0"), "no number of a unit");
        assert_eq!(fault("0,1,512,X,0"), "neither R nor W");
        assert_eq!(fault("0,-1,512,R,0"), "no block");
        assert_eq!(fault("0,1,512,R,-0.5"), "no time in seconds");
        assert_eq!(fault("0,1,512.5,R,0"), "no size in bytes");
    }
}
