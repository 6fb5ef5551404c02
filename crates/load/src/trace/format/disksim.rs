//! DiskSim's ASCII format, its default.
//!
//! Five words a line: milliseconds since the beginning as a decimal, device, block (of 512 bytes), blocks, flags in
//! hexadecimal, of which bit 0 says that it reads.
//!
//! Reference: J. Bucy et al., *The DiskSim Simulation Environment Version 4.0 Reference Manual*, CMU-PDL-08-101, 2008,
//! "Traces" (the format `ascii`).

use super::{ParseResult, RawRequest, RequestLine, TraceLine, NS_PER_MS, SECTOR_BYTES};
use crate::trace::fields::{decimal, exactly, number, times, words};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str = "milliseconds device block blocks flags (blocks of 512 bytes, flags in hexadecimal)";

pub(super) fn parse(line: &[u8]) -> ParseResult<'_> {
    let [time, device, block, blocks, flags] = exactly(words(line)).ok_or("not five words")?;
    if number(device).is_none() {
        return Err("no number of a device");
    }
    let flags = flags.strip_prefix(b"0x").unwrap_or(flags);
    let text = std::str::from_utf8(flags).ok().filter(|text| !text.starts_with('+'));
    let flags = text.and_then(|text| u32::from_str_radix(text, 16).ok()).ok_or("no flags in hexadecimal")?;
    Ok(TraceLine::Request(RawRequest {
        time_ns: decimal(time, NS_PER_MS).ok_or("no time in milliseconds")?,
        volume: device,
        kind: if flags & 1 == 1 { RequestKind::Read } else { RequestKind::Write },
        offset_bytes: times(block, SECTOR_BYTES).ok_or("no block")?,
        bytes: times(blocks, SECTOR_BYTES).ok_or("no number of blocks")?,
        response_ns: None,
    }))
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) -> Result<(), &'static str> {
    let (first_sector, sectors) = line.sectors()?;
    let (ns, device) = (line.since_first_ns, line.number_of_volume());
    let is_read = u32::from(line.record.kind == RequestKind::Read);
    // Writing to a string does not fail.
    let _ = writeln!(out, "{}.{:06} {device} {first_sector} {sectors} {is_read}", ns / NS_PER_MS, ns % NS_PER_MS);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_trace() {
        for (line, kind, time_ns, volume, first, count) in [
            ("13.191135 30 0 5 1", RequestKind::Read, 13_191_135, "30", 0, 5),
            ("25.911729 18 28601 12 0", RequestKind::Write, 25_911_729, "18", 28_601, 12),
            ("25 18 28601 12 0x41", RequestKind::Read, 25_000_000, "18", 28_601, 12),
        ] {
            let Ok(TraceLine::Request(raw)) = parse(line.as_bytes()) else { panic!("{line}") };
            assert_eq!((raw.kind, raw.time_ns, raw.volume), (kind, time_ns, volume.as_bytes()), "{line}");
            assert_eq!((raw.offset_bytes, raw.bytes), (first * 512, count * 512), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |line: &'static str| parse(line.as_bytes()).unwrap_err();
        assert_eq!(fault("13.2 30 0 5"), "not five words");
        assert_eq!(fault("13.2 sda 0 5 1"), "no number of a device");
        assert_eq!(fault("13.2 30 0 5 read"), "no flags in hexadecimal");
        assert_eq!(fault("-1 30 0 5 1"), "no time in milliseconds");
        assert_eq!(fault("1 30 x 5 1"), "no block");
        assert_eq!(fault("1 30 0 x 1"), "no number of blocks");
    }
}
