//! The text that `blkparse` prints in its default format.
//!
//! `major,minor cpu sequence seconds pid action RWBS sector + sectors [process]`. A request is an event `Q`: it was queued,
//! before merging and scheduling. Other events (issue, completion, merge, messages) are of the same requests, or of none;
//! flushes and discards move no data. What stands behind the events is a summary, which begins with a processor's or the
//! total's own heading. Sectors are of 512 bytes.
//!
//! Reference: the manual page blkparse(1), "OUTPUT DESCRIPTION AND FORMATTING", and the kernel's `blk_fill_rwbs`.

use super::{ParseResult, RawRequest, RequestLine, State, TraceLine, NS_PER_S, SECTOR_BYTES};
use crate::trace::fields::{decimal, first, number, times, words};
use raidlab_types::RequestKind;
use std::fmt::Write;

pub(super) const ACCEPTED: &str = "major,minor cpu sequence seconds pid action RWBS sector + sectors [process]";

pub(super) fn parse<'a>(line: &'a [u8], state: &mut State) -> ParseResult<'a> {
    let mut fields = words(line);
    let device = fields.next().unwrap_or_default();
    if state.is_over || is_heading(device) {
        state.is_over = true;
        return Ok(TraceLine::Other);
    }
    let mut numbers = device.split(|&byte| byte == b',');
    let is_device = [numbers.next(), numbers.next()].iter().all(|part| part.and_then(number).is_some());
    if !is_device || numbers.next().is_some() {
        return Err("no device as major,minor");
    }
    let [_cpu, _sequence, time, _pid, action] = first(&mut fields).ok_or("fewer than six fields")?;
    let time_ns = decimal(time, NS_PER_S).ok_or("no time in seconds")?;
    if action != b"Q" {
        return Ok(TraceLine::Other);
    }
    let Some(kind) = direction(fields.next().ok_or("no RWBS")?) else { return Ok(TraceLine::Other) };
    let (sector, plus, count) = (fields.next(), fields.next(), fields.next());
    // A flush has a direction but no sectors.
    let Some(sector) = sector.filter(|word| !word.starts_with(b"[")) else { return Ok(TraceLine::Other) };
    if plus != Some(&b"+"[..]) {
        return Err("no sector + sectors");
    }
    Ok(TraceLine::Request(RawRequest {
        time_ns,
        volume: device,
        kind,
        offset_bytes: times(sector, SECTOR_BYTES).ok_or("no sector")?,
        bytes: count.and_then(|count| times(count, SECTOR_BYTES)).ok_or("no number of sectors")?,
        response_ns: None,
    }))
}

/// The headings that a summary can begin with: `CPU0 (sda):`, `Total (sda):`.
fn is_heading(word: &[u8]) -> bool {
    word == b"Total" || word.strip_prefix(b"CPU").is_some_and(|rest| number(rest).is_some())
}

/// What RWBS says: the first letter, but that a flush before it (`F`) has its own.
fn direction(rwbs: &[u8]) -> Option<RequestKind> {
    match rwbs.strip_prefix(b"F").unwrap_or(rwbs).first() {
        Some(b'R') => Some(RequestKind::Read),
        Some(b'W') => Some(RequestKind::Write),
        _ => None,
    }
}

pub(super) fn write(line: &RequestLine<'_>, out: &mut String) -> Result<(), &'static str> {
    let (first, count) = line.sectors()?;
    let by_place = line.record.volume.to_string();
    let (major, minor) = match line.name.split_once('.') {
        Some((major, minor)) if [major, minor].iter().all(|part| number(part.as_bytes()).is_some()) => (major, minor),
        _ => ("0", by_place.as_str()),
    };
    let (at, kind) = (line.since_first_ns, if line.record.kind == RequestKind::Read { "R" } else { "W" });
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{major:>3},{minor:<3} {:>2} {:>8} {:>5}.{:09} {:>5} {:>2} {kind:>3} {first} + {count} [trace]",
        0,
        line.index + 1,
        at / NS_PER_S,
        at % NS_PER_S,
        0,
        "Q",
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> ParseResult<'_> {
        parse(line.as_bytes(), &mut State::default())
    }

    #[test]
    fn queued_reads_and_writes_are_requests() {
        for (line, kind, first, count, time_ns) in [
            (
                "  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]",
                RequestKind::Write,
                223_490,
                8,
                0,
            ),
            ("8,0 1 2 0.009507758 99 Q RA 7 + 56 [cat]", RequestKind::Read, 7, 56, 9_507_758),
            ("8,16 1 2 12.5 99 Q FWFS 7 + 8 [jbd2/sda1-8]", RequestKind::Write, 7, 8, 12_500_000_000),
        ] {
            let Ok(TraceLine::Request(raw)) = read(line) else { panic!("{line}") };
            assert_eq!((raw.kind, raw.time_ns), (kind, time_ns));
            assert_eq!((raw.offset_bytes, raw.bytes), (first * 512, count * 512));
            assert_eq!(raw.volume, line.trim().split(' ').next().expect("a device").as_bytes());
        }
    }

    #[test]
    fn other_events_are_none() {
        for line in [
            "8,0 3 2 0.000001829 697 G W 223490 + 8 [kjournald]",
            "8,0 3 4 0.000004074 697 D W 223490 + 8 [kjournald]",
            "8,0 1 1 0.001 0 C W 223490 + 8 [0]",
            "8,0 3 11 0.009507758 697 UT N [kblockd/0] 1",
            "8,0 0 0 0.000000000 0 m N cfq697 insert_request",
            "8,0 3 11 0.009 697 Q D 8 + 64 [fstrim]",
            "8,0 3 11 0.009 697 Q DS 8 + 64 [fstrim]",
            "8,0 3 11 0.009 697 Q FWS [jbd2]",
            "8,0 3 11 0.009 697 Q FN [jbd2]",
        ] {
            assert_eq!(read(line), Ok(TraceLine::Other), "{line}");
        }
    }

    #[test]
    fn the_summary_ends_the_events() {
        let mut state = State::default();
        for line in
            ["CPU0 (sda):", " Reads Queued:           0,        0KiB\t Writes Queued:", "Throughput (R/W): 0KiB/s"]
        {
            assert_eq!(parse(line.as_bytes(), &mut state), Ok(TraceLine::Other), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(read("sda 1 2 0.1 99 Q R 7 + 8 [cat]"), Err("no device as major,minor"));
        assert_eq!(read("8,0,1 1 2 0.1 99 Q R 7 + 8 [cat]"), Err("no device as major,minor"));
        assert_eq!(read("8,0 1 2 0.1 99"), Err("fewer than six fields"));
        assert_eq!(read("8,0 1 2 now 99 Q R 7 + 8 [cat]"), Err("no time in seconds"));
        assert_eq!(read("8,0 1 2 0.1 99 Q"), Err("no RWBS"));
        assert_eq!(read("8,0 1 2 0.1 99 Q R 7 8 [cat]"), Err("no sector + sectors"));
        assert_eq!(read("8,0 1 2 0.1 99 Q R x + 8 [cat]"), Err("no sector"));
        assert_eq!(read("8,0 1 2 0.1 99 Q R 7 +"), Err("no number of sectors"));
    }
}
