//! Flash drives: dies on channels, a translation layer that cleans up behind the host, a write cache.
//!
//! Purpose: what sets flash apart from a constant time. A new drive writes as fast as its dies program. Once its spare
//! is used up, every write also pays for moving what is still valid out of the block that is erased for it; in between
//! lies a transition. Reads share the dies with all that.
//!
//! - `spec`: the parameters; `geometry`: numbers of everything
//! - `ftl` with `blocks`: where units lie, and cleaning; knows no time
//! - `medium` with `meter`: dies, channels, cache, and how busy they were; knows no addresses
//! - `precondition`: what a drive has behind it at the start
//!
//! Invariants:
//! - Commands begin in rising order of time, and none ends before it begins.
//! - Totals are exact for every window: what dies, channels and the link do before its end counts, whoever waits for it.
//! - A read ends when its last byte has crossed the link. A write ends when all its data are in the cache (on the flash
//!   without one, or where it must be durable and the cache is not protected).
//! - The tables are worked out with the first command, not before: a drive that is only asked for its size is cheap.
//! - A drive that is `sparse` keeps tables for a part of its rows, which others share; its steady state is that of the
//!   whole drive (`tests/sparse.rs`), and it gets there as much sooner.
//! - No allocation per command once the queues have grown.
//!
//! Not modelled: wear and bad blocks, reads that must be repeated, pages of unequal speed, single-level caches, tables
//! that do not fit into memory, reading ahead, suspended programs, background cleaning when idle, heat.
//!
//! References: P. Desnoyers, *Analytic Modeling of SSD Write Performance*, SYSTOR 2012 (the setting of the translation
//! layer); A. Tavakkol, J. Gómez-Luna, M. Sadrosadati, S. Ghose, O. Mutlu, *MQSim*, FAST 2018 (which parts of a drive
//! matter, and why a simulation must begin in the steady state).

mod blocks;
mod ftl;
mod geometry;
mod medium;
mod meter;
mod precondition;
mod spec;

use crate::service::{Command, FlashTotals, Service, TimedService};
use crate::timeline::Timeline;
use crate::SpecError;
pub use blocks::Victim;
pub use ftl::{Cleaning, Placement};
use ftl::{Counts, Ftl};
use medium::Medium;
use raidlab_types::{OpKind, Seed};
use spec::FlashModel;
pub use spec::{Initial, SsdSpec};
use std::sync::Arc;

/// One flash drive.
#[derive(Debug, Clone)]
pub(crate) struct Ssd {
    model: Arc<FlashModel>,
    seed: Seed,
    /// Empty until the first command.
    ftl: Option<Ftl>,
    medium: Medium,
    /// To the host, and from the host; where only one direction works at a time the first is both.
    links: [Timeline; 2],
    /// When the last command began.
    clock: u64,
    /// What had been written when the totals were started.
    before: Counts,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Ssd {
    pub(crate) fn new(spec: &SsdSpec, seed: Seed) -> Result<Self, SpecError> {
        Ok(Ssd::of(Arc::new(spec.compile()?), seed))
    }

    fn of(model: Arc<FlashModel>, seed: Seed) -> Self {
        let medium = Medium::new(model.timings, model.geometry.dies, model.spec.channels, model.cache_units);
        Ssd {
            model,
            seed,
            ftl: None,
            medium,
            links: [Timeline::default(), Timeline::default()],
            clock: 0,
            before: Counts::default(),
        }
    }

    /// Another drive of the same model, with a past of its own.
    pub(crate) fn twin(&self, seed: Seed) -> Self {
        Ssd::of(Arc::clone(&self.model), seed)
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.model.capacity_sectors
    }

    pub(crate) fn queue_depth(&self) -> usize {
        self.model.queue_depth
    }

    /// Does now what the first command would have to wait for.
    pub(crate) fn prepare(&mut self) {
        if self.ftl.is_none() {
            let mut ftl = precondition::prepared(&self.model, self.seed);
            ftl.set_cleaning(self.model.spec.cleaning);
            self.ftl = Some(ftl);
        }
    }

    /// What was written to the flash since the totals were started, and how busy its parts were up to `now`, which must
    /// not lie before the last command.
    pub(crate) fn totals(&mut self, now: u64) -> FlashTotals {
        self.medium.advance(self.clock, now);
        let counts = self.counts().since(&self.before);
        let bytes = |units: u64| units * self.model.unit_bytes;
        let (flash_die_busy_ns, flash_channel_busy_ns) = self.medium.busiest(now);
        FlashTotals {
            flash_host_bytes: bytes(counts.host),
            flash_moved_bytes: bytes(counts.moved),
            flash_padded_bytes: bytes(counts.padded),
            flash_erased_blocks: counts.erased,
            flash_die_busy_ns,
            flash_channel_busy_ns,
            flash_link_busy_ns: self.links.iter().map(|link| link.busy(now)).max().unwrap_or(0),
        }
    }

    /// Starts the totals anew at `now`.
    pub(crate) fn reset_totals(&mut self, now: u64) {
        self.medium.advance(self.clock, now);
        self.before = self.counts();
        self.medium.reset_busy(now);
        self.links.iter_mut().for_each(|link| link.reset(now));
    }

    fn counts(&self) -> Counts {
        self.ftl.as_ref().map_or_else(Counts::default, |ftl| ftl.counts)
    }

    /// The visit of a command.
    pub(crate) fn serve(&mut self, command: Command) -> TimedService {
        self.prepare();
        // A driver on a real clock may be late to let a command in, and name a time before the last one's.
        self.clock = self.clock.max(command.now);
        let (done, transfer) = match command.kind {
            OpKind::Read => (self.read(&command), self.model.link.transfer(command.sectors * self.model.sector_bytes)),
            OpKind::Write | OpKind::WriteZeroes => {
                (self.write(&command), self.model.link.transfer(command.sectors * self.model.sector_bytes))
            }
            OpKind::Flush => (self.flush(), 0),
            OpKind::Discard => (self.discard(&command), 0),
        };
        let spent = done - command.now;
        let service =
            Service { overhead: spent - transfer.min(spent), transfer: transfer.min(spent), ..Service::default() };
        TimedService { begun: command.now, service, release: done }
    }

    /// Pages are read as they lie; what was never written, or is still in memory, is only sent.
    fn read(&mut self, command: &Command) -> u64 {
        let model = &self.model;
        let Some(ftl) = &self.ftl else { unreachable!("prepared") };
        let from = self.clock + model.read_overhead;
        self.medium.advance(self.clock, from);
        let mut command_ns = model.link.command;
        let (mut sector, mut done) = (command.lba, from);
        while sector < command.end() {
            let first = sector / model.unit_sectors;
            let page = ftl.page_of(model.place(first));
            let mut units = 1;
            let reached = |units: u32| (first + u64::from(units)) * model.unit_sectors;
            while reached(units) < command.end() && ftl.page_of(model.place(first + u64::from(units))) == page {
                units += 1;
            }
            let ready = match page {
                Some((die, _)) => self.medium.read(die, from, units),
                None => from,
            };
            let stop = reached(units).min(command.end());
            let sending = command_ns + model.link.transfer((stop - sector) * model.sector_bytes);
            done = done.max(self.links[READ].book(self.clock, ready, sending));
            (sector, command_ns) = (stop, 0);
        }
        done
    }

    /// Data come over the link page by page; each unit goes into the cache when there is room.
    fn write(&mut self, command: &Command) -> u64 {
        let from = self.clock + self.model.write_overhead;
        self.medium.advance(self.clock, from);
        let group_sectors = self.model.unit_sectors * u64::from(self.model.geometry.units_per_page);
        let link = if self.model.link.full_duplex { WRITE } else { READ };
        let mut command_ns = self.model.link.command;
        let (mut sector, mut done) = (command.lba, from);
        while sector < command.end() {
            let stop = ((sector / group_sectors + 1) * group_sectors).min(command.end());
            let sending = command_ns + self.model.link.transfer((stop - sector) * self.model.sector_bytes);
            let sent = self.links[link].book(self.clock, from, sending);
            done = done.max(self.take(sector, stop, from, sent));
            (sector, command_ns) = (stop, 0);
        }
        if self.model.cache_units.is_none() || (command.durable && !self.model.spec.power_loss_protection) {
            done = done.max(self.settle(command));
        }
        done
    }

    /// Takes the data of sectors `first` to `stop`, which are there at `sent`; returns when the last was taken.
    fn take(&mut self, first: u64, stop: u64, from: u64, sent: u64) -> u64 {
        let Some(ftl) = &mut self.ftl else { unreachable!("prepared") };
        let (unit_sectors, mut taken) = (self.model.unit_sectors, sent);
        for unit in first / unit_sectors..stop.div_ceil(unit_sectors) {
            let is_whole = first <= unit * unit_sectors && (unit + 1) * unit_sectors <= stop;
            let unit = self.model.place(unit);
            // The rest of a unit that is not overwritten as a whole must be read first.
            let ready = match ftl.page_of(unit) {
                Some((die, _)) if !is_whole => sent.max(self.medium.read(die, from, 1)),
                _ => sent,
            };
            taken = taken.max(self.medium.admit(ready));
            ftl.write(unit, &mut self.medium);
        }
        taken
    }

    /// Waits until a write is on the flash: pages that it does not fill are programmed as they are.
    fn settle(&mut self, command: &Command) -> u64 {
        let Some(ftl) = &mut self.ftl else { unreachable!("prepared") };
        let (mut done, mut last) = (0, None);
        for unit in command.lba / self.model.unit_sectors..command.end().div_ceil(self.model.unit_sectors) {
            let holder = ftl.holder(self.model.place(unit));
            // What was written together mostly lies together.
            if let Some(die) = holder.filter(|_| holder != last) {
                ftl.pad(die, &mut self.medium);
                done = done.max(self.medium.finish(die));
            }
            last = holder;
        }
        done
    }

    /// Waits until everything that was written before is on the flash.
    fn flush(&mut self) -> u64 {
        let from = self.clock + self.model.write_overhead;
        self.medium.advance(self.clock, from);
        if self.model.cache_units.is_none() || self.model.spec.power_loss_protection {
            return from;
        }
        let Some(ftl) = &mut self.ftl else { unreachable!("prepared") };
        self.medium.set_ready(from);
        (0..self.model.geometry.dies).for_each(|die| ftl.pad(die, &mut self.medium));
        (0..self.model.geometry.dies).map(|die| self.medium.finish(die)).fold(from, u64::max)
    }

    /// Forgets the units that lie wholly within.
    fn discard(&mut self, command: &Command) -> u64 {
        let Some(ftl) = &mut self.ftl else { unreachable!("prepared") };
        let units = command.lba.div_ceil(self.model.unit_sectors)..command.end() / self.model.unit_sectors;
        units.for_each(|unit| ftl.discard(self.model.place(unit)));
        self.clock + self.model.write_overhead
    }
}

#[cfg(test)]
mod tests;
