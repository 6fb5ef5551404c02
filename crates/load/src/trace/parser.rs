//! From the bytes of a trace to its records.
//!
//! Purpose: blocks of a file come in as they are read, records go out; a line may lie across two blocks. What a line means
//! is its format's affair.
//!
//! Invariants:
//! - Nothing but the names of volumes and half a line is kept from one block to the next.
//! - Lines end with a line feed, or a carriage return and a line feed; the last one need not. Blank lines mean nothing.
//! - Every other line is a record, or is counted in [`SkippedLines`], or is an error.

use super::format::{Format, State, TraceLine};
use super::{Names, Record, TraceError};
use raidlab_types::number::usize_from;

/// A line is never as long as this; what is has no line ends.
const LONGEST_LINE: usize = 1 << 16;
/// No system sends a device more in one request: Linux counts its bytes in 32 bits (`struct bvec_iter`, `bi_size`).
const LONGEST_REQUEST_BYTES: u64 = 1 << 32;
/// Lines that a guess is based on.
const GUESSED_BY: u64 = 32;

/// Lines that are no requests of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkippedLines {
    /// Known to be something else: headers, events that are no requests, flushes, discards.
    pub other_lines: u64,
    /// Requests of no bytes.
    pub empty_requests: u64,
}

/// Reads one trace: the head of this file says how.
#[derive(Debug, Clone)]
pub struct Parser {
    format: Format,
    file: String,
    names: Names,
    state: State,
    /// The beginning of a line that has not come to its end.
    rest: Vec<u8>,
    skipped: SkippedLines,
}

impl Parser {
    /// A parser of one file, which is called `file` in errors.
    pub fn new(format: Format, file: &str) -> Parser {
        Parser {
            format,
            file: file.to_owned(),
            names: Names::default(),
            state: State::default(),
            rest: Vec::new(),
            skipped: SkippedLines::default(),
        }
    }

    /// Takes the next bytes of the file and appends the records that end in them.
    ///
    /// # Errors
    /// A line that is no request and nothing else that the format has.
    pub fn feed(&mut self, mut block: &[u8], out: &mut Vec<Record>) -> Result<(), TraceError> {
        if !self.rest.is_empty() {
            let Some(end) = line_end(block) else { return self.keep(block) };
            let mut whole = std::mem::take(&mut self.rest);
            whole.extend_from_slice(&block[..end]);
            let read = self.line(&whole, out);
            whole.clear();
            self.rest = whole;
            read?;
            block = &block[end + 1..];
        }
        while let Some(end) = line_end(block) {
            self.line(&block[..end], out)?;
            block = &block[end + 1..];
        }
        self.keep(block)
    }

    /// The file is at its end: a last line without a line feed is read too.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<(), TraceError> {
        let last = std::mem::take(&mut self.rest);
        if last.is_empty() {
            return Ok(());
        }
        self.line(&last, out)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TraceError> {
        self.rest.extend_from_slice(part);
        if self.rest.len() < LONGEST_LINE {
            return Ok(());
        }
        let message = format!("no line ends within {LONGEST_LINE} bytes");
        Err(TraceError::of_line(&self.file, self.state.line + 1, &self.rest, &message, self.format.accepted()))
    }

    #[inline]
    fn line(&mut self, line: &[u8], out: &mut Vec<Record>) -> Result<(), TraceError> {
        self.state.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        match self.format.parse(line, &mut self.state) {
            Ok(TraceLine::Request(raw)) if raw.bytes == 0 => self.skipped.empty_requests += 1,
            Ok(TraceLine::Request(raw)) if raw.bytes > LONGEST_REQUEST_BYTES => {
                return Err(self.fault(line, "it asks for more than 4 GiB at once"));
            }
            Ok(TraceLine::Request(raw)) if raw.offset_bytes.checked_add(raw.bytes).is_none() => {
                return Err(self.fault(line, "it ends beyond 2^64 bytes"));
            }
            Ok(TraceLine::Request(raw)) => out.push(Record {
                line: self.state.line,
                time_ns: raw.time_ns,
                volume: self.names.number(raw.volume),
                kind: raw.kind,
                offset_bytes: raw.offset_bytes,
                bytes: raw.bytes,
                response_ns: raw.response_ns,
            }),
            Ok(TraceLine::Other) => self.skipped.other_lines += 1,
            Err(message) => return Err(self.fault(line, message)),
        }
        Ok(())
    }

    #[cold]
    fn fault(&self, line: &[u8], message: &str) -> TraceError {
        TraceError::of_line(&self.file, self.state.line, line, message, self.format.accepted())
    }

    /// The volumes met so far.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What the file is called.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Lines so far that gave no record.
    pub fn skipped(&self) -> SkippedLines {
        self.skipped
    }
}

#[inline]
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\n')
}

/// The format of a trace that begins like this, if its first lines are of one and no other.
pub fn guess(beginning: &[u8]) -> Option<Format> {
    let of = |format: &&Format| {
        let mut state = State::default();
        let mut known = 0;
        let whole = beginning.split(|&byte| byte == b'\n').take(usize_from(GUESSED_BY));
        let mut lines = whole.filter(|line| !line.trim_ascii().is_empty()).peekable();
        while let Some(line) = lines.next() {
            state.line += 1;
            // The last one may have been cut.
            let is_cut = lines.peek().is_none() && known > 0;
            match format.parse(line.strip_suffix(b"\r").unwrap_or(line), &mut state) {
                Ok(_) => known += 1,
                Err(_) if is_cut => {}
                Err(_) => return false,
            }
        }
        known > 0
    };
    let mut fitting = Format::ALL.iter().filter(of);
    let first = fitting.next().copied();
    first.filter(|_| fitting.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::RequestKind;

    const LINES: &[u8] = b"1,R,0,4096,10\r\n\n2,W,4096,512,20\n1,R,8192,0,30\n1,r,12288,1024,40";

    fn read(blocks: &[&[u8]]) -> (Vec<Record>, SkippedLines) {
        let (mut parser, mut out) = (Parser::new(Format::Alibaba, "a.csv"), Vec::new());
        for block in blocks {
            parser.feed(block, &mut out).unwrap();
        }
        parser.finish(&mut out).unwrap();
        (out, parser.skipped())
    }

    #[test]
    fn blocks_may_be_cut_anywhere() {
        let (whole, skipped) = read(&[LINES]);
        assert_eq!(whole.iter().map(|r| (r.line, r.volume)).collect::<Vec<_>>(), [(1, 0), (3, 1), (5, 0)]);
        assert_eq!((whole[1].kind, whole[1].time_ns), (RequestKind::Write, 20_000));
        assert_eq!(skipped, SkippedLines { other_lines: 0, empty_requests: 1 });
        for cut in 0..=LINES.len() {
            assert_eq!(read(&[&LINES[..cut], &LINES[cut..]]).0, whole, "cut at {cut}");
        }
        let single: Vec<&[u8]> = LINES.chunks(1).collect();
        assert_eq!(read(&single).0, whole);
    }

    #[test]
    fn errors_name_file_line_text_and_what_is_accepted() {
        let mut parser = Parser::new(Format::Alibaba, "a.csv");
        let error = parser.feed(b"1,R,0,4096,10\n\n1,X,0,4096,11\n", &mut Vec::new()).unwrap_err();
        assert_eq!((error.file.as_str(), error.line, error.text.as_str()), ("a.csv", 3, "'1,X,0,4096,11'"));
        assert!(error.to_string().starts_with("a.csv:3: '1,X,0,4096,11': "), "{error}");
        assert!(error.to_string().contains("; accepted: "), "{error}");
    }

    #[test]
    fn what_has_no_lines_does_not_fill_the_memory() {
        let mut parser = Parser::new(Format::Msr, "disk.img");
        let block = [0u8; 4096];
        let found = (0..1000).find_map(|_| parser.feed(&block, &mut Vec::new()).err()).expect("an error before 4 MB");
        assert!(found.message.contains("no line ends"), "{found}");
    }

    #[test]
    fn a_request_longer_than_any_device_is_sent_is_refused() {
        for (bytes, refused) in [(1u64 << 32, false), ((1 << 32) + 512, true), (3 << 60, true)] {
            let mut parser = Parser::new(Format::Alibaba, "a.csv");
            let read = parser.feed(format!("1,R,0,{bytes},10\n").as_bytes(), &mut Vec::new());
            assert_eq!(read.is_err_and(|error| error.message.contains("more than 4 GiB")), refused, "{bytes} bytes");
        }
    }

    #[test]
    fn an_address_beyond_64_bits_is_refused() {
        let mut parser = Parser::new(Format::Alibaba, "a.csv");
        let error = parser.feed(b"1,R,18446744073709551615,512,10\n", &mut Vec::new()).unwrap_err();
        assert!(error.message.contains("2^64"), "{error}");
    }
}
