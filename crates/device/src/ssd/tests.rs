use super::*;

/// Two channels of two dies; pages of 16 KiB over two planes, in units of 4 KiB; times that have nothing in common.
fn spec(more: &str) -> SsdSpec {
    let text = format!(
        r#"{{"capacity_bytes": 8388608, "channels": 2, "dies_per_channel": 2, "planes_per_die": 2, "pages_per_block": 8,
            "page_bytes": 8192, "read_us": 50, "program_us": 600, "erase_ms": 3, "channel_mb_s": 200, "link_mb_s": 500,
            "link_command_us": 1, "read_overhead_us": 5, "write_overhead_us": 7, "spare_percent": 20{more}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

const CACHED: &str = r#", "cache_bytes": 131072, "initial": "filled""#;

fn ssd(more: &str) -> Ssd {
    Ssd::new(&spec(more), Seed::new(1)).unwrap()
}

fn command(kind: OpKind, lba: u64, sectors: u64, now: u64) -> Command {
    Command { kind, lba, sectors, durable: false, entered: now, now }
}

/// How long a command took, in ns.
fn took(ssd: &mut Ssd, kind: OpKind, lba: u64, sectors: u64, now: u64) -> u64 {
    let visit = ssd.serve(command(kind, lba, sectors, now));
    assert_eq!(visit.release, visit.begun + visit.service.total());
    visit.release - now
}

// Over a channel a unit takes 20,480 ns and a page of both planes 81,920; over the link 8,192 and 32,768.
const UNIT: u64 = 20_480;
const PAGE: u64 = 4 * UNIT;

#[test]
fn a_read_is_overhead_sensing_channel_and_link() {
    let mut drive = ssd(CACHED);
    let one = 5_000 + 50_000 + UNIT + 1_000 + 8_192;
    assert_eq!(took(&mut drive, OpKind::Read, 0, 8, 0), one);
    let mean = spec(CACHED).idle_mean(OpKind::Read, 4096).unwrap();
    assert_eq!((mean.total().as_ns(), mean.transfer.as_ns()), (one, 8_192));
    // A sector of it: the flash gives a unit, the link what was asked for.
    assert_eq!(took(&mut drive, OpKind::Read, 3, 1, 1_000_000), 5_000 + 50_000 + UNIT + 1_000 + 1_024);
}

#[test]
fn a_long_read_uses_all_dies_at_once() {
    // Four pages on four dies, two a channel: the second pages of both channels come a page's transfer later.
    let mut drive = ssd(CACHED);
    let arrived = 5_000 + 50_000 + 2 * PAGE;
    let long = took(&mut drive, OpKind::Read, 0, 128, 0);
    assert_eq!(long, arrived + 2 * 32_768, "the link is quicker than the two channels");
    assert_eq!(spec(CACHED).idle_mean(OpKind::Read, 65_536).unwrap().total().as_ns(), long);
}

#[test]
fn reads_of_one_die_queue_and_those_of_others_do_not() {
    let mut drive = ssd(CACHED);
    let one = took(&mut drive, OpKind::Read, 0, 8, 0);
    assert_eq!(took(&mut drive, OpKind::Read, 8, 8, 0), one + 50_000 + UNIT, "the same page, but asked for again");
    let other = took(&mut drive, OpKind::Read, 32, 8, 0);
    assert!(other < one + 10_000, "{other}: another die on another channel; only the link is shared");
}

#[test]
fn what_was_never_written_is_not_read() {
    let mut drive = ssd(r#", "cache_bytes": 131072"#);
    assert_eq!(took(&mut drive, OpKind::Read, 0, 8, 0), 5_000 + 1_000 + 8_192);
}

#[test]
fn a_cached_write_is_over_when_its_data_are_there() {
    let mut drive = ssd(CACHED);
    assert_eq!(took(&mut drive, OpKind::Write, 0, 8, 0), 7_000 + 1_000 + 8_192);
    // It waits for its page to fill, so it is read from memory.
    assert_eq!(took(&mut drive, OpKind::Read, 0, 8, 1_000_000), 5_000 + 1_000 + 8_192);
}

#[test]
fn without_a_cache_a_write_is_over_when_it_is_on_the_flash() {
    let mut drive = ssd(r#", "initial": "filled""#);
    let one = 7_000 + 1_000 + 8_192 + PAGE + 600_000;
    assert_eq!(took(&mut drive, OpKind::Write, 0, 8, 0), one);
    assert_eq!(spec("").idle_mean(OpKind::Write, 4096).unwrap().total().as_ns(), one);
    assert_eq!(drive.totals(one).flash_padded_bytes, 3 * 4096, "the rest of the page is lost");
}

#[test]
fn a_durable_write_and_a_flush_wait_for_the_flash_unless_power_may_fail() {
    let on_flash = 7_000 + 1_000 + 8_192 + PAGE + 600_000;
    let mut drive = ssd(CACHED);
    let visit = drive.serve(Command { durable: true, ..command(OpKind::Write, 0, 8, 0) });
    assert_eq!(visit.release, on_flash);
    drive.serve(command(OpKind::Write, 8, 8, 2_000_000));
    // The page waits to be filled until the flush asks for it.
    assert_eq!(drive.serve(command(OpKind::Flush, 0, 0, 2_010_000)).release, 2_017_000 + PAGE + 600_000);
    assert_eq!(took(&mut drive, OpKind::Flush, 0, 0, 9_000_000), 7_000, "nothing is left to wait for");
    let mut safe = ssd(&format!(r#"{CACHED}, "power_loss_protection": true"#));
    let visit = safe.serve(Command { durable: true, ..command(OpKind::Write, 0, 8, 0) });
    assert_eq!(visit.release, 7_000 + 1_000 + 8_192);
    assert_eq!(took(&mut safe, OpKind::Flush, 0, 0, 20_000), 7_000);
}

#[test]
fn a_part_of_a_unit_is_read_before_it_is_written() {
    let mut drive = ssd(CACHED);
    assert_eq!(took(&mut drive, OpKind::Write, 1, 2, 0), 7_000 + 50_000 + UNIT);
}

#[test]
fn a_full_cache_lets_writes_wait_for_programs() {
    // 32 units fit: eight pages, two a die. The next page waits until the first is on the flash.
    let mut drive = ssd(CACHED);
    let taken: Vec<u64> = (0..9).map(|page| took(&mut drive, OpKind::Write, page * 32, 32, 0)).collect();
    let sent = |page: u64| 7_000 + (page + 1) * (1_000 + 32_768);
    (0..8).for_each(|page| assert_eq!(taken[page as usize], sent(page)));
    assert_eq!(taken[8], sent(0) + PAGE + 600_000);
}

#[test]
fn a_discarded_unit_is_gone_and_need_not_be_moved() {
    let mut drive = ssd(CACHED);
    // The units that lie wholly within sectors 4 to 28: the second and the third.
    drive.serve(command(OpKind::Discard, 4, 24, 0));
    let ftl = drive.ftl.as_ref().unwrap();
    let there: Vec<bool> = (0..4).map(|unit| ftl.page_of(unit).is_some()).collect();
    assert_eq!(there, [true, false, false, true]);
}

#[test]
fn a_duplex_link_sends_while_it_receives() {
    let ends = |more: &str| {
        let mut drive = ssd(&format!("{CACHED}{more}"));
        drive.serve(command(OpKind::Write, 4096, 128, 0));
        took(&mut drive, OpKind::Read, 0, 8, 0)
    };
    assert!(ends(r#", "link_full_duplex": false"#) > ends(""));
}

/// Of the busiest die, channel and direction of the link, up to `now`.
fn busy(drive: &mut Ssd, now: u64) -> [u64; 3] {
    let totals = drive.totals(now);
    [totals.flash_die_busy_ns, totals.flash_channel_busy_ns, totals.flash_link_busy_ns]
}

#[test]
fn what_a_read_takes_of_its_parts_is_exact_at_any_time() {
    let mut drive = ssd(CACHED);
    let one = took(&mut drive, OpKind::Read, 0, 8, 0);
    // Sensed from 5,000 on, sent from 55,000 on, over the link from 75,480 on.
    assert_eq!(busy(&mut drive, 5_000), [0, 0, 0]);
    assert_eq!(busy(&mut drive, 30_000), [25_000, 0, 0]);
    assert_eq!(busy(&mut drive, 60_000), [55_000, 5_000, 0]);
    assert_eq!(busy(&mut drive, 80_000), [50_000 + UNIT, UNIT, 4_520]);
    assert_eq!(busy(&mut drive, one), [50_000 + UNIT, UNIT, 9_192]);
    // Two more of the same die: it works for both, the link's other direction for none.
    took(&mut drive, OpKind::Read, 0, 8, 1_000_000);
    took(&mut drive, OpKind::Read, 8, 8, 1_000_000);
    assert_eq!(busy(&mut drive, 2_000_000), [3 * (50_000 + UNIT), 3 * UNIT, 3 * 9_192]);
}

#[test]
fn a_window_has_what_was_done_within_it() {
    let mut drive = ssd(CACHED);
    // A page's worth: it is programmed when its last unit is there, and nobody waits for that.
    let sent = took(&mut drive, OpKind::Write, 0, 32, 0);
    assert_eq!(sent, 7_000 + 1_000 + 32_768);
    drive.reset_totals(sent + 10_000);
    assert_eq!(busy(&mut drive, sent + 10_000), [0, 0, 0]);
    assert_eq!(busy(&mut drive, sent + PAGE), [PAGE - 10_000, PAGE - 10_000, 0]);
    // Asked for or not, at the end of the window it is half done.
    let half = sent + PAGE + 300_000;
    assert_eq!(busy(&mut drive, half), [PAGE - 10_000 + 300_000, PAGE - 10_000, 0]);
    drive.reset_totals(half);
    assert_eq!(busy(&mut drive, 9_000_000), [300_000, 0, 0]);
    assert_eq!(drive.totals(9_000_000).flash_host_bytes, 0, "it was written before");
}

#[test]
fn looking_changes_nothing() {
    let run = |look: bool| {
        let mut drive = ssd(r#", "cache_bytes": 131072, "initial": "steady""#);
        let mut rng = Seed::new(4).draws();
        let mut now = 0;
        let mut next = |i: u64| {
            now += rng.below(60_000);
            if look && i.is_multiple_of(7) {
                drive.reset_totals(now);
            } else if look && i % 7 == 3 {
                drive.totals(now);
            }
            let kind = if rng.below(2) == 0 { OpKind::Read } else { OpKind::Write };
            drive.serve(command(kind, rng.below(2000) * 8, 8, now)).release
        };
        (0..20_000).map(&mut next).collect::<Vec<u64>>()
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn time_never_runs_backwards_and_parts_add_up() {
    for more in ["", CACHED, r#", "cache_bytes": 1048576, "initial": "steady", "victim": "fifo""#] {
        let mut drive = ssd(more);
        let mut rng = Seed::new(5).draws();
        let mut now = 0;
        for i in 0..20_000u64 {
            // Now and then a driver is late and names a time before the last.
            let at = if i % 97 == 0 { now - rng.below(now.min(5_000) + 1) } else { now };
            let (lba, sectors) = (rng.below(16_000), 1 + rng.below(100));
            let kind = match rng.below(20) {
                0 => OpKind::Flush,
                1 => OpKind::Discard,
                2..10 => OpKind::Read,
                _ => OpKind::Write,
            };
            let visit = drive.serve(Command { durable: i % 31 == 0, ..command(kind, lba, sectors, at) });
            assert_eq!(visit.begun, at);
            assert!(visit.release >= at + visit.service.total() && visit.release >= drive.clock);
            now += rng.below(400_000);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_drive_and_twins_differ() {
    let run = |mut drive: Ssd| {
        let mut rng = Seed::new(9).draws();
        let mut write = |i: u64| drive.serve(command(OpKind::Write, rng.below(2000) * 8, 8, i * 20_000)).release;
        (0..30_000).map(&mut write).collect::<Vec<u64>>()
    };
    let steady = r#", "cache_bytes": 131072, "initial": "steady""#;
    assert_eq!(run(ssd(steady)), run(ssd(steady)));
    assert_ne!(run(ssd(steady)), run(ssd(steady).twin(Seed::new(2))));
}

#[test]
fn bad_parameters_are_named() {
    let key = |change: &dyn Fn(&mut SsdSpec)| {
        let mut changed = spec("");
        change(&mut changed);
        Ssd::new(&changed, Seed::new(1)).unwrap_err().key
    };
    assert_eq!(key(&|s| s.channels = 0), "channels");
    assert_eq!(key(&|s| s.pages_per_block = 1), "pages_per_block");
    assert_eq!(key(&|s| s.mapping_bytes = 3000), "mapping_bytes");
    assert_eq!(key(&|s| s.mapping_bytes = 0), "mapping_bytes");
    assert_eq!(key(&|s| s.page_bytes = 6000), "mapping_bytes");
    assert_eq!(key(&|s| s.spare_percent = 0.0), "spare_percent");
    assert_eq!(key(&|s| s.spare_percent = f64::NAN), "spare_percent");
    assert_eq!(key(&|s| s.capacity_bytes = 65_535), "capacity_bytes");
    assert_eq!(key(&|s| s.capacity_bytes = u64::MAX), "capacity_bytes");
    assert_eq!(key(&|s| s.read_us = 0.0), "read_us");
    assert_eq!(key(&|s| s.erase_ms = -1.0), "erase_ms");
    assert_eq!(key(&|s| s.channel_mb_s = 0.0), "channel_mb_s");
    assert_eq!(key(&|s| s.link_mb_s = f64::INFINITY), "link_mb_s");
    assert_eq!(key(&|s| s.cache_bytes = 131_071), "cache_bytes");
    assert_eq!(key(&|s| s.queue_depth = 0), "queue_depth");
    assert_eq!(key(&|s| s.sector_bytes = 520), "sector_bytes");
}

#[test]
fn a_write_waits_for_the_block_that_is_cleaned_whole() {
    // One die, eight pages of a unit a block, written in order again and again: a victim holds nothing, so that cleaning is
    // an erasure. The write that finds too little room waits for it, or nobody does.
    let slow_and_erased = |cleaning| {
        let mut small =
            SsdSpec { capacity_bytes: 131_072, cleaning, page_bytes: 4096, ..spec(r#", "initial": "filled""#) };
        (small.channels, small.dies_per_channel, small.planes_per_die) = (1, 1, 1);
        let mut drive = Ssd::new(&small, Seed::new(1)).unwrap();
        let one = 7_000 + 1_000 + 8_192 + UNIT + 600_000;
        let slow = (0..96).filter(|i| {
            let took = took(&mut drive, OpKind::Write, i % 32 * 8, 8, i * 100_000_000);
            assert!(took == one || took == one + 3_000_000, "{took}");
            took != one
        });
        let slow = slow.count() as u64;
        (slow, drive.totals(100 * 100_000_000).flash_erased_blocks)
    };
    let (slow, erased) = slow_and_erased(Cleaning::Whole);
    assert!(slow == erased && erased > 8, "{slow} of {erased}");
    let (slow, erased) = slow_and_erased(Cleaning::Paced);
    assert!(slow == 0 && erased > 8, "{slow} of {erased}");
}
