//! What is wrong with a trace, and where.

/// Longest text of a line that is shown.
const LONGEST_SHOWN: usize = 120;

/// A line that is no request, a request that cannot be offered, a file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}; accepted: {accepted}", self.place())]
pub struct TraceError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1; 0 where it is the whole file that is at fault.
    pub line: u64,
    /// What stands there, cut if it is long.
    pub text: String,
    /// What is wrong with it.
    pub message: String,
    /// What would be accepted.
    pub accepted: String,
}

impl TraceError {
    /// An error about the whole file.
    pub fn of_file(file: &str, message: &str, accepted: &str) -> TraceError {
        let (message, accepted) = (message.to_owned(), accepted.to_owned());
        TraceError { file: file.to_owned(), line: 0, text: String::new(), message, accepted }
    }

    fn place(&self) -> String {
        match self.line {
            0 => format!("{}: ", self.file),
            line => format!("{}:{line}: {}: ", self.file, self.text),
        }
    }

    /// An error about the text of a line.
    pub(crate) fn of_line(file: &str, line: u64, text: &[u8], message: &str, accepted: &str) -> TraceError {
        TraceError {
            file: file.to_owned(),
            line,
            text: shown(text),
            message: message.to_owned(),
            accepted: accepted.to_owned(),
        }
    }
}

/// Bytes as they may stand in a message: one line, no control characters, not too long.
fn shown(text: &[u8]) -> String {
    let whole = String::from_utf8_lossy(text);
    let plain: String = whole.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(LONGEST_SHOWN) {
        Some((cut, _)) => format!("'{}...'", &plain[..cut]),
        None => format!("'{plain}'"),
    }
}
