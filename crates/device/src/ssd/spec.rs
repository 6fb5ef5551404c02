//! What a device file says of a flash drive, checked and compiled.

use super::blocks::Victim;
use super::ftl::{Cleaning, Placement};
use super::geometry::FlashGeometry;
use super::medium::{FlashTimes, Medium};
use crate::error::{check_sector_bytes, ms_to_ns, us_to_ns, within};
use crate::fixed::default_sector_bytes;
use crate::timeline::Timeline;
use crate::{IdleMean, Provenance, SchedulerSpec, SpecError, ThrottleSpec};
use raidlab_types::number::{f64_from, saturating_u64, u32_from};
use raidlab_types::{Duration, OpKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Physical units of a drive, at eight bytes of memory each: 4 GiB of tables.
const MAX_UNITS: u64 = 1 << 29;

/// What a flash drive has behind it when the first operation comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// Nothing was ever written: reads find nothing to read, and writes need no cleaning until the spare is used up.
    #[default]
    Fresh,
    /// Every address was written once, in order.
    Filled,
    /// That, then single units at random places until write amplification has settled.
    Steady,
}

/// Parameters of a flash drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdSpec {
    /// What the device is called.
    pub name: Option<String>,
    /// What it stands for.
    pub description: Option<String>,
    /// Where each parameter comes from.
    #[serde(default)]
    pub provenance: BTreeMap<String, Provenance>,
    /// Limits on the rate at which it takes operations.
    #[serde(default)]
    pub throttle: Vec<ThrottleSpec>,
    /// What the host sees, in bytes; rounded down to whole pages on every die.
    pub capacity_bytes: u64,
    /// Of so many rows of pages one is kept in tables, which all of them share.
    #[serde(default = "crate::fixed::one")]
    pub sparse: u32,
    /// Logical block, in bytes.
    #[serde(default = "default_sector_bytes")]
    pub sector_bytes: u32,
    /// Channels between controller and flash.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die, which program and erase together.
    #[serde(default = "crate::fixed::one")]
    pub planes_per_die: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Bytes of a page of one plane, those for error correction not counted.
    pub page_bytes: u32,
    /// What the translation layer keeps track of, in bytes; divides a page.
    #[serde(default = "default_mapping_bytes")]
    pub mapping_bytes: u32,
    /// Sensing a page, in us.
    pub read_us: f64,
    /// Programming a page, in us.
    pub program_us: f64,
    /// Erasing a block, in ms.
    pub erase_ms: f64,
    /// Rate of a channel, in MB/s (10^6).
    pub channel_mb_s: f64,
    /// Flash beyond the host's capacity that holds data no longer valid, in percent of it. What the translation layer
    /// needs to work with (one erased block a die) comes on top.
    pub spare_percent: f64,
    /// Which block is cleaned next.
    #[serde(default)]
    pub victim: Victim,
    /// When it is cleaned.
    #[serde(default)]
    pub cleaning: Cleaning,
    /// Whether pages that hold only what is moved stay within the die: the channel is not asked.
    #[serde(default)]
    pub copy_back: bool,
    /// Which die takes what is written.
    #[serde(default)]
    pub placement: Placement,
    /// Work of the controller on a read before the flash is asked, in us.
    #[serde(default)]
    pub read_overhead_us: f64,
    /// Work of the controller on a write before its data are taken, in us.
    #[serde(default)]
    pub write_overhead_us: f64,
    /// Rate of the interface to the host, in MB/s.
    pub link_mb_s: f64,
    /// What each command takes of the interface besides its data, in us.
    #[serde(default)]
    pub link_command_us: f64,
    /// Whether both directions of the interface work at the same time.
    #[serde(default = "yes")]
    pub link_full_duplex: bool,
    /// Memory for what has been written and is not on the flash yet, in bytes; 0: a write ends when it is on the flash.
    #[serde(default)]
    pub cache_bytes: u64,
    /// What is in the cache survives a loss of power, so a flush has nothing to do.
    #[serde(default)]
    pub power_loss_protection: bool,
    /// Commands at work in the drive; the rest wait outside.
    #[serde(default = "default_queue_depth")]
    pub queue_depth: u32,
    /// Order in which those outside are let in.
    #[serde(default)]
    pub scheduler: SchedulerSpec,
    /// What the drive has behind it at the start.
    #[serde(default)]
    pub initial: Initial,
}

fn default_mapping_bytes() -> u32 {
    4096
}

fn default_queue_depth() -> u32 {
    32
}

fn yes() -> bool {
    true
}

/// A spec and what follows from it: the same for every drive of one model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlashModel {
    pub spec: SsdSpec,
    pub geometry: FlashGeometry,
    pub timings: FlashTimes,
    /// How many addresses share a place in the tables, and units of the rows in which they do.
    pub sparse: u64,
    pub row_units: u64,
    pub unit_bytes: u64,
    pub unit_sectors: u64,
    pub sector_bytes: u64,
    pub capacity_sectors: u64,
    pub queue_depth: usize,
    pub cache_units: Option<u32>,
    pub read_overhead: u64,
    pub write_overhead: u64,
    pub link: HostLink,
}

/// The interface to the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HostLink {
    pub ns_per_byte: f64,
    pub command: u64,
    pub full_duplex: bool,
}

impl HostLink {
    #[inline]
    pub(crate) fn transfer(&self, bytes: u64) -> u64 {
        saturating_u64(f64_from(bytes) * self.ns_per_byte + 0.5)
    }
}

/// A whole number within bounds.
fn count(key: &str, value: u32, least: u32, most: u32) -> Result<u32, SpecError> {
    within(key, value, least..=most, "")
}

/// Microseconds as whole nanoseconds, from `least_us` to a second.
fn ns(key: &str, us: f64, least_us: f64) -> Result<u64, SpecError> {
    us_to_ns(key, us, least_us..=1e6)
}

/// Nanoseconds a byte from a rate.
fn ns_per_byte(key: &str, mb_s: f64) -> Result<f64, SpecError> {
    Ok(1e3 / within(key, mb_s, 0.1..=1e6, " MB/s")?)
}

impl SsdSpec {
    /// Checks the parameters and works out what follows from them.
    pub(crate) fn compile(&self) -> Result<FlashModel, SpecError> {
        check_sector_bytes(self.sector_bytes)?;
        let geometry = self.geometry()?;
        let channel = ns_per_byte("channel_mb_s", self.channel_mb_s)?;
        let moving = |bytes: u32| saturating_u64((f64::from(bytes) * channel).round()).max(1);
        let timings = FlashTimes {
            read: ns("read_us", self.read_us, 0.001)?,
            program: ns("program_us", self.program_us, 0.001)?,
            erase: ms_to_ns("erase_ms", self.erase_ms, 1e4)?,
            unit_transfer: moving(self.mapping_bytes),
            page_transfer: moving(self.page_bytes * self.planes_per_die),
            copy_back: self.copy_back,
        };
        let link = HostLink {
            ns_per_byte: ns_per_byte("link_mb_s", self.link_mb_s)?,
            command: ns("link_command_us", self.link_command_us, 0.0)?,
            full_duplex: self.link_full_duplex,
        };
        let unit_bytes = u64::from(self.mapping_bytes);
        let sector_bytes = u64::from(self.sector_bytes);
        Ok(FlashModel {
            spec: self.clone(),
            geometry,
            timings,
            sparse: u64::from(self.sparse),
            row_units: u64::from(geometry.dies) * u64::from(geometry.units_per_page),
            unit_bytes,
            unit_sectors: unit_bytes / sector_bytes,
            sector_bytes,
            capacity_sectors: u64::from(geometry.logical_units()) * u64::from(self.sparse) * unit_bytes / sector_bytes,
            queue_depth: count("queue_depth", self.queue_depth, 1, 4096)? as usize,
            cache_units: self.cache_units(&geometry)?,
            read_overhead: ns("read_overhead_us", self.read_overhead_us, 0.0)?,
            write_overhead: ns("write_overhead_us", self.write_overhead_us, 0.0)?,
            link,
        })
    }

    fn geometry(&self) -> Result<FlashGeometry, SpecError> {
        let dies =
            count("channels", self.channels, 1, 256)? * count("dies_per_channel", self.dies_per_channel, 1, 256)?;
        let planes = count("planes_per_die", self.planes_per_die, 1, 16)?;
        let pages = count("pages_per_block", self.pages_per_block, 2, 65_536)?;
        let page_bytes = count("page_bytes", self.page_bytes, 512, 1 << 20)?;
        let unit = self.mapping_bytes;
        if unit == 0 || !page_bytes.is_multiple_of(unit) || !unit.is_multiple_of(self.sector_bytes) {
            let (sector, key) = (self.sector_bytes, "mapping_bytes");
            let message =
                format!("{unit} must divide a page of {page_bytes} bytes into whole sectors of {sector} bytes");
            return Err(SpecError::new(key, message));
        }
        if !(0.1..=1000.0).contains(&self.spare_percent) {
            let message = format!("{} must lie between 0.1 and 1000 %", self.spare_percent);
            return Err(SpecError::new("spare_percent", message));
        }
        let units_per_page = page_bytes / unit * planes;
        let units_per_block = u64::from(units_per_page) * u64::from(pages);
        let row = u64::from(units_per_page) * u64::from(dies);
        let sparse = u64::from(count("sparse", self.sparse, 1, 1 << 16)?);
        let units_per_die = self.capacity_bytes / sparse / u64::from(unit) / row * u64::from(units_per_page);
        if units_per_die == 0 {
            let least = row * u64::from(unit) * sparse;
            let message = format!("{} is less than a page on every die, {least} bytes", self.capacity_bytes);
            return Err(SpecError::new("capacity_bytes", message));
        }
        let spare = 1.0 + self.spare_percent / 100.0;
        // Never less than a whole block to spare, or a die could be full of what is valid.
        let for_data = saturating_u64((f64_from(units_per_die) * spare / f64_from(units_per_block)).round());
        let blocks_per_die = for_data.max(units_per_die.div_ceil(units_per_block) + 1) + 1;
        let physical = blocks_per_die * units_per_block * u64::from(dies);
        if physical > MAX_UNITS {
            let message = format!(
                "{} are {physical} mapping units with the spare, at eight bytes of memory each; accepted: up to {MAX_UNITS}, or more with sparse",
                self.capacity_bytes
            );
            return Err(SpecError::new("capacity_bytes", message));
        }
        Ok(FlashGeometry {
            dies,
            units_per_page,
            units_per_block: u32_from(units_per_block),
            blocks_per_die: u32_from(blocks_per_die),
            units_per_die: u32_from(units_per_die),
        })
    }

    /// What the cache holds; every die must be able to fill a page while another is programmed.
    fn cache_units(&self, geometry: &FlashGeometry) -> Result<Option<u32>, SpecError> {
        if self.cache_bytes == 0 {
            return Ok(None);
        }
        let units = self.cache_bytes / u64::from(self.mapping_bytes);
        let least = 2 * u64::from(geometry.dies) * u64::from(geometry.units_per_page);
        if !(least..=u64::from(u32::MAX / 2)).contains(&units) {
            let least = least * u64::from(self.mapping_bytes);
            let message = format!("{} must be 0 or at least {least}, two pages a die", self.cache_bytes);
            return Err(SpecError::new("cache_bytes", message));
        }
        Ok(Some(u32_from(units)))
    }

    /// Flash over user data, whole blocks counted; what write amplification depends on.
    pub fn spare_factor(&self) -> Result<f64, SpecError> {
        Ok(self.geometry()?.spare_factor())
    }

    /// Mapping units of a block of all planes of a die.
    pub fn units_per_block(&self) -> Result<u32, SpecError> {
        Ok(self.geometry()?.units_per_block)
    }

    /// Mean times of one operation of `bytes` bytes, written in order before, on an idle drive.
    pub(crate) fn idle_mean(&self, kind: OpKind, bytes: u64) -> Result<IdleMean, SpecError> {
        let model = self.compile()?;
        let transfer = match kind {
            OpKind::Flush | OpKind::Discard => 0,
            _ => model.link.transfer(bytes),
        };
        let done = match kind {
            OpKind::Read => model.idle_read(bytes),
            OpKind::Write | OpKind::WriteZeroes => {
                let on_flash = model.timings.page_transfer + model.timings.program;
                let sent = model.write_overhead + model.link.command + transfer;
                sent + if model.cache_units.is_some() { 0 } else { on_flash }
            }
            OpKind::Flush | OpKind::Discard => model.write_overhead,
        };
        Ok(IdleMean::still(Duration::from_ns(done.saturating_sub(transfer)), Duration::from_ns(transfer)))
    }
}

impl FlashModel {
    /// The place of a mapping unit in the tables: of each `sparse` rows of pages that follow one another all share one.
    /// So neighbours stay neighbours, and what is hot or cold over many rows stays so.
    #[inline]
    pub(crate) fn place(&self, unit: u64) -> u32 {
        if self.sparse == 1 {
            return u32_from(unit);
        }
        u32_from(unit / (self.sparse * self.row_units) * self.row_units + unit % self.row_units)
    }

    /// When a read of pages that were written one after another has arrived: each die sends its page when it has it.
    fn idle_read(&self, bytes: u64) -> u64 {
        let mut medium = Medium::new(self.timings, self.geometry.dies, self.spec.channels, None);
        let mut link = Timeline::default();
        let page = u64::from(self.geometry.units_per_page) * self.unit_bytes;
        let mut command = self.link.command;
        let mut done = 0;
        for piece in 0..bytes.div_ceil(page) {
            let part = (bytes - piece * page).min(page);
            let units = u32_from(part.div_ceil(self.unit_bytes));
            let die = u32_from(piece % u64::from(self.geometry.dies));
            let ready = medium.read(die, self.read_overhead, units);
            done = link.book(0, ready, command + self.link.transfer(part)).max(done);
            command = 0;
        }
        done
    }
}
