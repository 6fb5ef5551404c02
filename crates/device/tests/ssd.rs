//! Flash drives in steady state: write amplification against the closed forms, transition, queueing, what ships.

#![allow(clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::*;
use raidlab_device::{Device, DeviceSpec, FlashTotals, Initial, PairPricing, Placement, SsdSpec};
use raidlab_types::{Instant, OpKind, Seed};

/// A drive of one die with pages of 4 KiB, of so many units a block and so much spare.
fn plain(pages: u32, spare_percent: f64, victim: &str, initial: &str) -> SsdSpec {
    // Four hundred blocks of data.
    let capacity = 400 * u64::from(pages) * 4096;
    let text = format!(
        r#"{{"capacity_bytes": {capacity}, "channels": 1, "dies_per_channel": 1, "pages_per_block": {pages},
            "page_bytes": 4096, "read_us": 50, "program_us": 500, "erase_ms": 3, "channel_mb_s": 400, "link_mb_s": 500,
            "spare_percent": {spare_percent}, "cache_bytes": 65536, "victim": "{victim}", "initial": "{initial}"}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// The same flash on four dies, written in pages of so many units.
fn of_four_dies(mut spec: SsdSpec, placement: Placement, page_units: u32) -> SsdSpec {
    (spec.channels, spec.dies_per_channel, spec.placement) = (2, 2, placement);
    (spec.page_bytes, spec.pages_per_block) = (page_units * 4096, spec.pages_per_block / page_units);
    spec.cache_bytes *= u64::from(page_units);
    spec
}

/// Uniform random writes of a unit each, 32 at a time; what went to the flash meanwhile, and the time it took.
fn overwrite(device: &mut Device, writes: u64, seed: u64) -> (FlashTotals, u64) {
    let units = device.capacity_sectors() / 8;
    let mut rng = Seed::new(seed).draws();
    let mut now = device.poll_timeout().unwrap_or(Instant::ZERO);
    let begun = now;
    device.reset_totals(now);
    for i in 0..writes {
        while device.in_flight() >= 32 {
            now = device.poll_timeout().unwrap();
            while device.poll_done(now).is_some() {}
        }
        device.handle_op(now, op(i, OpKind::Write, rng.below(units) * 8, 8));
    }
    (device.flash(now).unwrap(), now.since(begun).as_ns())
}

fn amplification(flash: &FlashTotals) -> f64 {
    (flash.flash_host_bytes + flash.flash_moved_bytes + flash.flash_padded_bytes) as f64 / flash.flash_host_bytes as f64
}

/// FIFO cleaning of uniform random writes with `alpha` times the flash that the data need: a page survives one round of
/// the queue with probability exp(-alpha / A), so 1 - 1/A = exp(-alpha / A). (Desnoyers 2012, there with Lambert's W.)
fn fifo(alpha: f64) -> f64 {
    bisect(1.0, 1e4, |a| 1.0 - 1.0 / a - libm::exp(-alpha / a))
}

/// Greedy cleaning with blocks of `n` pages (Desnoyers 2012): blocks lose pages one by one in proportion to what they
/// hold, and are cleaned when they hold x - 1.
fn greedy(alpha: f64, n: f64) -> f64 {
    let cost = |x: f64| n / (n - (x - 1.0));
    let x = bisect(0.5 + 1e-9, n, |x| alpha / cost(x) - libm::log((n + 0.5) / (x - 0.5)));
    cost(x)
}

fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let rises = f(low) < 0.0;
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if (f(middle) < 0.0) == rises {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn write_amplification_is_that_of_the_closed_forms() {
    for (pages, spare) in [(32, 10.0), (32, 50.0), (128, 25.0)] {
        for victim in ["greedy", "fifo"] {
            let spec = plain(pages, spare, victim, "steady");
            let alpha = spec.spare_factor().unwrap();
            let expected = if victim == "greedy" { greedy(alpha, f64::from(pages)) } else { fifo(alpha) };
            let mut drive = device(&DeviceSpec::Ssd(Box::new(spec)), PairPricing::Queued);
            let writes = drive.capacity_sectors() / 8 * 2;
            let seen = amplification(&overwrite(&mut drive, writes, 1).0);
            assert!(
                (seen / expected - 1.0).abs() < 0.03,
                "{victim} {pages} {spare}: {seen:.3}, expected {expected:.3}"
            );
        }
    }
}

#[test]
fn several_dies_amplify_as_one_does_wherever_writes_are_placed() {
    for (page_units, off) in [(1, 0.015), (4, 0.025)] {
        for (victim, spare) in [("greedy", 12.0), ("greedy", 50.0), ("fifo", 25.0)] {
            let seen = [Placement::ByAddress, Placement::Dynamic].map(|placement| {
                let spec = of_four_dies(plain(32, spare, victim, "steady"), placement, page_units);
                let alpha = spec.spare_factor().unwrap();
                let expected = if victim == "greedy" { greedy(alpha, 32.0) } else { fifo(alpha) };
                let mut drive = device(&DeviceSpec::Ssd(Box::new(spec)), PairPricing::Queued);
                let writes = drive.capacity_sectors() / 8 * 8;
                let seen = amplification(&overwrite(&mut drive, writes, 1).0);
                let what = format!("{placement:?} {page_units} {victim} {spare}: {seen:.3}, expected {expected:.3}");
                // Of pages of several units one is kept that the form does not know of.
                assert!((seen / expected - 1.0).abs() < off, "{what}");
                seen
            });
            assert!((seen[1] / seen[0] - 1.0).abs() < 0.01, "{page_units} {victim} {spare}: {seen:?}");
        }
    }
}

#[test]
fn several_dies_end_where_a_steady_drive_begins() {
    for placement in [Placement::ByAddress, Placement::Dynamic] {
        let rate = |initial, turns| {
            let mut spec = of_four_dies(plain(64, 15.0, "greedy", "fresh"), placement, 4);
            spec.initial = initial;
            let mut drive = device(&DeviceSpec::Ssd(Box::new(spec)), PairPricing::Queued);
            let units = drive.capacity_sectors() / 8;
            overwrite(&mut drive, turns * units, 2);
            4.0 * units as f64 / overwrite(&mut drive, 4 * units, 3).1 as f64
        };
        let (aged, steady) = (rate(Initial::Fresh, 6), rate(Initial::Steady, 1));
        assert!((aged / steady - 1.0).abs() < 0.02, "{placement:?}: {:.4}", aged / steady);
    }
}

#[test]
fn what_was_written_in_small_pieces_is_read_from_many_dies_unless_its_address_says_where_it_lies() {
    // Sixteen units: by address four on each die, which senses them one after another; otherwise wherever they came to lie.
    let mean_ns = |placement| {
        let mut spec = of_four_dies(plain(64, 15.0, "greedy", "steady"), placement, 16);
        (spec.channels, spec.dies_per_channel, spec.cache_bytes) = (8, 1, 1 << 20);
        let mut drive = device(&DeviceSpec::Ssd(Box::new(spec)), PairPricing::Queued);
        let (mut rng, places) = (Seed::new(5).draws(), drive.capacity_sectors() / 128);
        let mut now = Instant::ZERO;
        for i in 0..500 {
            drive.handle_op(now, read(i, rng.below(places) * 128, 128));
            now = drive.poll_timeout().unwrap();
            while drive.poll_done(now).is_some() {}
        }
        now.as_ns() as f64 / 500.0
    };
    let (by_address, dynamic) = (mean_ns(Placement::ByAddress), mean_ns(Placement::Dynamic));
    // One die does sixteen times 60 us. Of eight dies the one with most of sixteen has some four.
    assert!((by_address / (16.0 * 60_240.0) - 1.0).abs() < 0.05, "{by_address}");
    assert!((3.5..5.5).contains(&(dynamic / 60_240.0)), "{dynamic}");
}

#[test]
fn a_new_drive_is_fast_until_its_spare_is_used_up() {
    let spec = DeviceSpec::Ssd(Box::new(plain(64, 15.0, "greedy", "fresh")));
    let mut drive = device(&spec, PairPricing::Queued);
    let units = drive.capacity_sectors() / 8;
    // A third of the drive: every write finds an erased page, and the rate is that of programming.
    let (flash, fresh_ns) = overwrite(&mut drive, units / 3, 1);
    assert_eq!(flash.flash_moved_bytes, 0);
    let page_ns = fresh_ns as f64 / (units / 3) as f64;
    assert!((page_ns / 510_240.0 - 1.0).abs() < 0.01, "{page_ns}");
    // Six times its size later it has settled where a drive that begins steady is.
    overwrite(&mut drive, 6 * units, 2);
    let (flash, aged_ns) = overwrite(&mut drive, units, 3);
    let spec = DeviceSpec::Ssd(Box::new(plain(64, 15.0, "greedy", "steady")));
    let (steady, steady_ns) = overwrite(&mut device(&spec, PairPricing::Queued), units, 3);
    assert!((amplification(&flash) / amplification(&steady) - 1.0).abs() < 0.02);
    assert!((aged_ns as f64 / steady_ns as f64 - 1.0).abs() < 0.02);
    assert!(aged_ns as f64 / units as f64 > 2.5 * page_ns);
}

#[test]
fn a_drive_is_the_same_whether_its_state_was_kept_or_not() {
    let drives = |seed| {
        let spec = DeviceSpec::Ssd(Box::new(plain(32, 20.0, "greedy", "steady")));
        Device::new(&spec, 512, PairPricing::Queued, Seed::new(seed)).unwrap()
    };
    let first = overwrite(&mut drives(1), 5000, 1);
    // Others push its state out of what is kept.
    for pages in [8, 16, 24, 40, 48] {
        let spec = DeviceSpec::Ssd(Box::new(plain(pages, 20.0, "greedy", "steady")));
        device(&spec, PairPricing::Queued).prepare();
    }
    assert_eq!(overwrite(&mut drives(1), 5000, 1), first);
    assert_eq!(overwrite(&mut drives(2).twin(Seed::new(1)), 5000, 1), first, "a twin is what its seed says");
    assert_ne!(overwrite(&mut drives(2), 5000, 1), first);
}

#[test]
fn more_dies_serve_more_reads_at_once() {
    let rate = |channels: u32, dies: u32| {
        let mut spec = plain(32, 20.0, "greedy", "filled");
        (spec.channels, spec.dies_per_channel, spec.cache_bytes) = (channels, dies, 1 << 20);
        let mut drive = device(&DeviceSpec::Ssd(Box::new(spec)), PairPricing::Queued);
        let units = drive.capacity_sectors() / 8;
        let mut rng = Seed::new(4).draws();
        let mut now = Instant::ZERO;
        for i in 0..20_000 {
            while drive.in_flight() >= 32 {
                now = drive.poll_timeout().unwrap();
                while drive.poll_done(now).is_some() {}
            }
            drive.handle_op(now, read(i, rng.below(units) * 8, 8));
        }
        20_000.0 / (now.as_ns() as f64 / 1e9)
    };
    // One die senses 50 us and sends 10.24; the channel and the link are hardly used.
    let one = rate(1, 1);
    assert!((one / (1e9 / 60_240.0) - 1.0).abs() < 0.01, "{one}");
    assert!((2.9..4.01).contains(&(rate(4, 1) / one)));
    // Sixteen dies on one channel: the channel is the limit.
    let bound = rate(1, 16);
    assert!((bound / (1e9 / 10_240.0) - 1.0).abs() < 0.02, "{bound}");
}

#[test]
fn what_a_flash_drive_cannot_do_is_refused() {
    let refused = |change: &dyn Fn(&mut SsdSpec), pricing| {
        let mut spec = plain(32, 20.0, "greedy", "fresh");
        change(&mut spec);
        Device::new(&DeviceSpec::Ssd(Box::new(spec)), 512, pricing, Seed::new(1)).unwrap_err().key
    };
    assert_eq!(refused(&|s| s.scheduler = raidlab_device::SchedulerSpec::Sptf, PairPricing::Queued), "scheduler");
    assert_eq!(refused(&|_| (), PairPricing::Prepaid), "pair_pricing");
}

#[test]
fn the_drives_that_ship_do_what_their_sheets_say() {
    for text in [SSD_SATA, SSD_NVME] {
        let spec = file(text);
        let drive = device(&spec, PairPricing::Queued);
        assert_eq!(drive.logical_block_bytes(), 512);
        let read_us = spec.idle_mean(OpKind::Read, 4096).unwrap().total().as_ns() as f64 / 1e3;
        let write_us = spec.idle_mean(OpKind::Write, 4096).unwrap().total().as_ns() as f64 / 1e3;
        assert!(write_us < read_us && read_us < 200.0, "{read_us} {write_us}");
    }
}
