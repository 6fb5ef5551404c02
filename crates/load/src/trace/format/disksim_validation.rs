//! DiskSim's validation format: what a real disk took for requests given to it one at a time.
//!
//! Six words a line: `R` or `W`; what the traced driver saw of the buffer (`Hit`, `Miss`; `Doub` and `Trip` are writes that
//! left the bus twice or thrice); sector (of 512 bytes); sectors; the response time and the time from its end to the next
//! request, in microseconds. So a request is issued when the gap behind the one before it has passed.
//!
//! Reference: the traces `valid/*.trace` of the DiskSim 4.0 distribution; manual, chapter "Validation".

use super::{ParseResult, RawRequest, State, TraceLine, NS_PER_US, SECTOR_BYTES};
use crate::trace::fields::{self, decimal, exactly, times, words};

pub(super) const ACCEPTED: &str = "R|W Hit|Miss|Doub|Trip LBN sectors service_us gap_us";
/// Why it is only read.
pub(super) const NOT_WRITTEN: &str = "what a disk took, one request at a time, is not in other traces";

/// The one disk it speaks of.
const DISK: &[u8] = b"disk";

pub(super) fn parse<'a>(line: &'a [u8], state: &mut State) -> ParseResult<'a> {
    let [kind, buffer, lba, sectors, service, gap] = exactly(words(line)).ok_or("not six words")?;
    let kind = fields::kind(kind, &[b"R"], &[b"W"]).ok_or("neither R nor W")?;
    if !matches!(buffer, b"Hit" | b"Miss" | b"Doub" | b"Trip") {
        return Err("no word of the buffer");
    }
    let offset_bytes = times(lba, SECTOR_BYTES).ok_or("no sector")?;
    let bytes = times(sectors, SECTOR_BYTES).filter(|&bytes| bytes > 0).ok_or("no number of sectors")?;
    let service_ns = decimal(service, NS_PER_US).ok_or("no service time in microseconds")?;
    let gap_ns = decimal(gap, NS_PER_US).ok_or("no time to the next request, in microseconds")?;
    let time_ns = state.clock_ns;
    let next_ns = time_ns.checked_add(service_ns).and_then(|end| end.checked_add(gap_ns));
    state.clock_ns = next_ns.ok_or("times beyond 2^64 ns")?;
    Ok(TraceLine::Request(RawRequest {
        time_ns,
        volume: DISK,
        kind,
        offset_bytes,
        bytes,
        response_ns: Some(service_ns),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::RequestKind;

    #[test]
    fn a_request_follows_the_gap_behind_the_one_before() {
        let mut state = State::default();
        let mut read = |line: &'static str| match parse(line.as_bytes(), &mut state) {
            Ok(TraceLine::Request(raw)) => raw,
            other => panic!("{other:?}"),
        };
        let first = read("R Hit 547163 12 18228.000000 20935.440364");
        assert_eq!((first.time_ns, first.response_ns, first.bytes), (0, Some(18_228_000), 12 * 512));
        let second = read("W Doub    25805   43  28803.000000 20296.786638");
        assert_eq!((second.time_ns, second.offset_bytes), (18_228_000 + 20_935_440, 25_805 * 512));
        assert_eq!(second.kind, RequestKind::Write);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |line: &'static str| parse(line.as_bytes(), &mut State::default()).unwrap_err();
        assert_eq!(fault("R Hit 5 1 2.0"), "not six words");
        assert_eq!(fault("X Hit 5 1 2.0 3.0"), "neither R nor W");
        assert_eq!(fault("R Quad 5 1 2.0 3.0"), "no word of the buffer");
        assert_eq!(fault("R Hit 5 0 2.0 3.0"), "no number of sectors");
        assert_eq!(fault("R Hit 5 1 inf 3.0"), "no service time in microseconds");
        assert_eq!(fault("R Hit 5 1 2.0 -3.0"), "no time to the next request, in microseconds");
    }
}
