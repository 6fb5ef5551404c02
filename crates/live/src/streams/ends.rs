//! The two ends of a stream, while it runs.
//!
//! Invariants:
//! - A call moves one block, and returns when it has been handed over (or taken): one request is outstanding at each end.
//! - What raidlab makes up is incompressible, and no two sectors of it are alike: buffers hold random bytes, and each
//!   sector is stamped with the stream, its place and the number of its block.

use super::array::Port;
use super::far::Connection;
use super::pace::Time;
use crate::content::Stamper;
use crate::memory::MemoryMapping;
use raidlab_load::streams::tape::{TapeReader, TapeWriter};
use raidlab_types::number::{u32_from, usize_from};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A part of a stream that is moved at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamBlock {
    pub index: u64,
    /// Where it begins in the stream.
    pub offset: u64,
    pub len: usize,
}

/// All blocks of a stream, in order; the last may be shorter.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamBlocks {
    pub bytes: u64,
    pub block_bytes: u64,
}

impl StreamBlocks {
    pub(super) fn count(&self) -> u64 {
        self.bytes.div_ceil(self.block_bytes)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = StreamBlock> {
        (0..self.count()).map(move |index| {
            let offset = index * self.block_bytes;
            StreamBlock { index, offset, len: usize_from((self.bytes - offset).min(self.block_bytes)) }
        })
    }
}

/// Memory used round and round, in whole blocks.
#[derive(Debug)]
pub(super) struct Region {
    pub memory: MemoryMapping,
    pub block_bytes: u64,
}

impl Region {
    fn block(&mut self, block: StreamBlock) -> &mut [u8] {
        let places = (self.memory.len() as u64 / self.block_bytes).max(1);
        let start = usize_from(block.index % places * self.block_bytes);
        &mut self.memory.bytes_mut()[start..start + block.len]
    }
}

/// What raidlab hands over itself: what it makes up, stamped block by block, or the user's own data as they are.
pub(super) enum Payload {
    Generated(Maker),
    Sample(Region),
}

/// A part of a file or device.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileRegion<'a> {
    pub file: &'a File,
    /// Where the stream begins in it.
    pub offset_bytes: u64,
}

/// Makes what raidlab sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maker {
    pub stamper: Stamper,
    pub sector_bytes: u64,
    pub stream: u32,
}

impl Maker {
    pub(super) fn new(seed: u64, stream: u32, block_bytes: u64) -> Maker {
        let sector_bytes = if block_bytes.is_multiple_of(4096) { 4096 } else { 512 };
        Maker { stamper: Stamper::new(seed, u32_from(sector_bytes)), sector_bytes, stream }
    }

    fn stamp(&self, bytes: &mut [u8], block: StreamBlock) {
        self.stamper.stamp(bytes, self.stream, block.offset / self.sector_bytes, block.index + 1);
    }
}

/// Where bytes come from.
pub(super) enum StreamSource<'a> {
    Null,
    /// With who stamps it; nobody where it holds the user's own data.
    Memory(Region, Option<Maker>),
    Part(FileRegion<'a>),
    Array(Port),
    Tape(TapeReader, Payload),
}

impl StreamSource<'_> {
    /// The bytes of a block: in `buffer`, or where the source has them.
    pub(super) fn get<'b>(
        &'b mut self,
        block: StreamBlock,
        buffer: &'b mut MemoryMapping,
        time: Time<'_>,
    ) -> io::Result<&'b mut [u8]> {
        match self {
            StreamSource::Null => Ok(&mut buffer.bytes_mut()[..block.len]),
            StreamSource::Memory(region, maker) => {
                let bytes = region.block(block);
                if let Some(maker) = maker {
                    maker.stamp(bytes, block);
                }
                Ok(bytes)
            }
            StreamSource::Part(part) => {
                let bytes = &mut buffer.bytes_mut()[..block.len];
                part.file.read_exact_at(bytes, part.offset_bytes + block.offset)?;
                Ok(bytes)
            }
            StreamSource::Array(port) => {
                let bytes = &mut buffer.bytes_mut()[..block.len];
                port.read(block, bytes)?;
                Ok(bytes)
            }
            StreamSource::Tape(tape, content) => {
                let bytes = &mut buffer.bytes_mut()[..block.len];
                match content {
                    Payload::Generated(maker) => maker.stamp(bytes, block),
                    Payload::Sample(region) => bytes.copy_from_slice(region.block(block)),
                }
                time.wait_until(tape.give(time.now_ns(), block.len as u64));
                Ok(bytes)
            }
        }
    }

    /// How often a tape stopped.
    pub(super) fn stops(&self) -> u64 {
        if let StreamSource::Tape(tape, _) = self {
            tape.stops
        } else {
            0
        }
    }
}

/// Where bytes go.
pub(super) enum StreamSink<'a> {
    Null,
    Memory(Region),
    Part(FileRegion<'a>),
    Array(Port),
    Tape(TapeWriter),
    Far(Connection),
}

impl StreamSink<'_> {
    /// Takes a block.
    pub(super) fn put(&mut self, block: StreamBlock, bytes: &[u8], time: Time<'_>) -> io::Result<()> {
        match self {
            StreamSink::Null => {}
            StreamSink::Memory(region) => region.block(block).copy_from_slice(bytes),
            StreamSink::Part(part) => part.file.write_all_at(bytes, part.offset_bytes + block.offset)?,
            StreamSink::Array(port) => port.write(block, bytes)?,
            StreamSink::Tape(tape) => {
                time.wait_until(tape.take(time.now_ns(), block.len as u64));
            }
            StreamSink::Far(connection) => connection.send(bytes, time)?,
        }
        Ok(())
    }

    /// Has everything for good: on the medium, on the tape.
    pub(super) fn finish(&mut self, time: Time<'_>) -> io::Result<()> {
        match self {
            StreamSink::Null | StreamSink::Memory(_) => {}
            StreamSink::Part(part) => part.file.sync_data()?,
            StreamSink::Array(port) => port.flush()?,
            StreamSink::Tape(tape) => {
                time.wait_until(tape.drained_ns());
            }
            StreamSink::Far(connection) => connection.finish(time)?,
        }
        Ok(())
    }

    /// What has just been put, where it can be looked at at once.
    pub(super) fn arrived(&mut self, block: StreamBlock) -> Option<&[u8]> {
        match self {
            StreamSink::Memory(region) => Some(region.block(block)),
            _ => None,
        }
    }

    /// How often a tape stopped.
    pub(super) fn stops(&self) -> u64 {
        if let StreamSink::Tape(tape) = self {
            tape.stops
        } else {
            0
        }
    }
}

/// A number that differs, but for one chance in 2^64, wherever the bytes do.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    // Every step is a bijection of the state, so one wrong word can never be made good by what follows.
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(29);
    let mut words = bytes.chunks_exact(8);
    let hash = words
        .by_ref()
        .fold(bytes.len() as u64, |hash, word| step(hash, u64::from_le_bytes(word.try_into().expect("eight bytes"))));
    words.remainder().iter().fold(hash, |hash, &byte| step(hash, u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_a_stream_once() {
        let blocks: Vec<StreamBlock> = StreamBlocks { bytes: 2500, block_bytes: 1000 }.iter().collect();
        assert_eq!(
            blocks.iter().map(|b| (b.offset, b.len)).collect::<Vec<_>>(),
            [(0, 1000), (1000, 1000), (2000, 500)]
        );
        assert_eq!(StreamBlocks { bytes: 2000, block_bytes: 1000 }.count(), 2);
    }

    #[test]
    fn a_digest_sees_every_byte_and_the_length() {
        let bytes: Vec<u8> = (0..100).collect();
        let whole = digest(&bytes);
        for i in 0..100 {
            let mut other = bytes.clone();
            other[i] ^= 0x10;
            assert_ne!(digest(&other), whole, "byte {i}");
        }
        assert_ne!(digest(&bytes[..99]), whole);
        assert_ne!(digest(&[0; 8]), digest(&[0; 16]));
    }

    #[test]
    fn memory_is_used_round_and_round_and_never_sends_the_same_twice() {
        let mut memory = MemoryMapping::new(8192).expect("memory");
        memory.bytes_mut().fill(7);
        let mut source = StreamSource::Memory(Region { memory, block_bytes: 4096 }, Some(Maker::new(1, 0, 4096)));
        let (stop, clock) = (std::sync::atomic::AtomicBool::new(false), crate::io::Clock::start());
        let mut buffer = MemoryMapping::new(4096).expect("memory");
        let mut seen: Vec<Vec<u8>> = StreamBlocks { bytes: 5 * 4096, block_bytes: 4096 }
            .iter()
            .map(|block| source.get(block, &mut buffer, Time { clock, stop: &stop }).expect("bytes").to_vec())
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 5);
    }
}
