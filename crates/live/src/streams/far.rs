//! A sink on another machine: a connection over which blocks go as they are, as `rcp` sends a file.
//!
//! Purpose: a copy to another machine's disk, timed until that machine has it. Whoever asks for the run has opened the
//! connection and agreed with the far end who it is; here nothing but the stream's bytes goes over it, and back comes, as
//! eight bytes with the least first, how many of them the far end has for good.
//!
//! Invariants:
//! - The descriptor stays its owner's: what is used, and closed, is a copy.
//! - A far end that takes or says nothing ends the stream, and does not keep the run from being stopped.

use super::pace::Time;
use rustix::net::sockopt::socket_type;
use rustix::net::SocketType;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// How long a call waits before it looks whether the run has been stopped.
const LOOK: Duration = Duration::from_millis(200);
/// A far end that does nothing for so long is gone.
const PATIENCE_NS: u64 = 120_000_000_000;

/// The connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    sent: u64,
}

impl Connection {
    /// Takes a copy of a connected descriptor. A cell names it by a number, which may be that of anything or of nothing:
    /// what is no TCP connection is refused, and left as it was.
    pub(super) fn new(descriptor: RawFd) -> io::Result<Connection> {
        // SAFETY: a number that is no open descriptor is an error of this call, and no memory is involved.
        let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and nobody else's.
        let copy = unsafe { OwnedFd::from_raw_fd(copy) };
        if socket_type(&copy)? != SocketType::STREAM {
            return Err(io::Error::from(ErrorKind::NotConnected));
        }
        let stream = TcpStream::from(copy);
        // What is not connected, or of another family, has no far end on another machine.
        stream.peer_addr()?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        Ok(Connection { stream, sent: 0 })
    }

    /// Sends a block.
    pub(super) fn send(&mut self, mut bytes: &[u8], time: Time<'_>) -> io::Result<()> {
        let mut moved_ns = time.now_ns();
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    self.sent += count as u64;
                    moved_ns = time.now_ns();
                }
                Err(error) => go_on(error, moved_ns, time)?,
            }
        }
        Ok(())
    }

    /// Says that this was all, and waits until the far end has it.
    pub(super) fn finish(&mut self, time: Time<'_>) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let (mut answer, mut known, begun_ns) = ([0; 8], 0, time.now_ns());
        while known < answer.len() {
            match self.stream.read(&mut answer[known..]) {
                Ok(0) => return Err(io::Error::other("the far end has gone without saying that it has all of it")),
                Ok(count) => known += count,
                Err(error) => go_on(error, begun_ns, time)?,
            }
        }
        let has = u64::from_le_bytes(answer);
        if has == self.sent {
            return Ok(());
        }
        Err(io::Error::other(format!("the far end has {has} bytes of {}", self.sent)))
    }
}

/// Whether to try again after a call that did nothing.
fn go_on(error: io::Error, since_ns: u64, time: Time<'_>) -> io::Result<()> {
    match error.kind() {
        ErrorKind::Interrupted => Ok(()),
        ErrorKind::WouldBlock | ErrorKind::TimedOut if time.stopped() => Err(ErrorKind::Interrupted.into()),
        ErrorKind::WouldBlock | ErrorKind::TimedOut if time.now_ns().saturating_sub(since_ns) < PATIENCE_NS => Ok(()),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Err(io::Error::other("the far end does nothing any more")),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Clock;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        (near, listener.accept().expect("its far end").0)
    }

    #[test]
    fn a_copy_is_done_when_the_far_end_says_that_it_has_all() {
        for has in [100_000_u64, 99_999] {
            let (near, mut far) = pair();
            let taking = std::thread::spawn(move || {
                let mut all = Vec::new();
                far.read_to_end(&mut all).expect("bytes");
                far.write_all(&has.to_le_bytes()).expect("an answer");
                all
            });
            let stop = AtomicBool::new(false);
            let time = Time { clock: Clock::start(), stop: &stop };
            let mut connection = Connection::new(near.as_raw_fd()).expect("a connection");
            let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
            bytes.chunks(30_000).for_each(|block| connection.send(block, time).expect("sent"));
            let finished = connection.finish(time);
            assert_eq!(taking.join().expect("the far end"), bytes);
            match has {
                100_000 => finished.expect("it has all"),
                _ => assert_eq!(
                    finished.expect_err("one byte is lost").to_string(),
                    "the far end has 99999 bytes of 100000"
                ),
            }
        }
    }

    #[test]
    fn a_far_end_that_takes_nothing_does_not_keep_the_run_from_stopping() {
        let (near, _far) = pair();
        let stop = AtomicBool::new(false);
        let time = Time { clock: Clock::start(), stop: &stop };
        let mut connection = Connection::new(near.as_raw_fd()).expect("a connection");
        stop.store(true, Ordering::Relaxed);
        let block = vec![1; 1 << 26];
        assert_eq!(connection.send(&block, time).expect_err("stopped").kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn what_is_no_connection_is_refused() {
        let file = std::fs::File::open("/dev/null").expect("a file");
        let (here, _there) = UnixStream::pair().expect("two ends");
        let (near, far) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
        let (near, far) = (near.expect("a port"), far.expect("a port"));
        near.connect(far.local_addr().expect("its address")).expect("datagrams need no answer");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let numbers = [file.as_raw_fd(), here.as_raw_fd(), near.as_raw_fd(), listener.as_raw_fd()];
        for descriptor in [-1, RawFd::MAX].into_iter().chain(numbers) {
            assert!(Connection::new(descriptor).is_err(), "{descriptor}");
        }
        near.send(b"still here").expect("what was refused is as it was");
    }
}
