//! What a volume may hold while writes overlap: per sector, every value that some order of the writes allows.
//!
//! A value is possible until a write that began after the value was complete is itself complete. A read may give any value
//! possible when it began, or written since.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use raidlab_types::Extent;

/// A write as one sector sees it.
#[derive(Debug, Clone, Copy)]
struct SectorVersion {
    value: u8,
    write: u64,
    /// When the write was over, and whether it succeeded.
    done_at: Option<u64>,
}

/// The possible contents of one volume, or of one running read.
#[derive(Debug, Clone)]
pub struct ReferenceModel {
    sectors: Vec<Vec<SectorVersion>>,
}

impl ReferenceModel {
    /// A volume that certainly holds `content`.
    pub fn new(content: &[u8]) -> ReferenceModel {
        let entry = |&value: &u8| vec![SectorVersion { value, write: u64::MAX, done_at: Some(0) }];
        ReferenceModel { sectors: content.iter().map(entry).collect() }
    }

    /// What a read of `extent` that begins now may give.
    pub fn snapshot(&self, extent: Extent) -> ReferenceModel {
        ReferenceModel { sectors: self.sectors[extent.lba as usize..extent.end() as usize].to_vec() }
    }

    /// Write number `write` begins; `skip` sectors lie before the part of its `data` that begins at `lba`.
    pub fn begin(&mut self, write: u64, lba: u64, data: &[u8]) {
        for (sector, &value) in self.sectors[lba as usize..].iter_mut().zip(data) {
            sector.push(SectorVersion { value, write, done_at: None });
        }
    }

    /// The write that began at `began` is over; a failed one may have left its value or not.
    pub fn end(&mut self, write: u64, extent: Extent, began: u64, now: u64, success: bool) {
        for sector in &mut self.sectors[extent.lba as usize..extent.end() as usize] {
            if success {
                sector.retain(|e| e.done_at.is_none_or(|done| done > began));
            }
            sector.iter_mut().filter(|e| e.write == write).for_each(|e| e.done_at = Some(now));
        }
    }

    /// The first sector of `content` that holds a value no order of writes allows.
    pub fn first_wrong(&self, content: &[u8]) -> Option<(usize, Vec<u8>)> {
        assert_eq!(content.len(), self.sectors.len());
        content.iter().zip(&self.sectors).enumerate().find_map(|(i, (value, entries))| {
            let allowed = || entries.iter().map(|e| e.value).collect();
            (!entries.iter().any(|e| e.value == *value)).then(|| (i, allowed()))
        })
    }
}
