//! What the models cost, per operation.
//!
//! `service` is one operation through `handle_op` and `poll_done` on an idle device; `queued` holds 32 in flight. Addresses
//! are drawn beforehand: random 8-sector reads over the whole device, and whole tracks for the study's disk.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]
#![allow(missing_docs)] // The macros of criterion make undocumented functions.

use common::{op, read};
use criterion::measurement::WallTime;
use criterion::{criterion_group, criterion_main, BenchmarkGroup, Criterion, Throughput};
use raidlab_device::{Device, PairPricing};
use raidlab_types::{Instant, OpKind, Operation, Seed};
use std::hint::black_box;

#[path = "../tests/common/mod.rs"]
mod common;

const FILES: [(&str, &str, u32, u64); 5] = [
    ("hdd-7200-bare", common::HDD_7200_BARE, 512, 8),
    ("hdd-7200", common::HDD_7200, 512, 8),
    ("amdahl6380", common::AMDAHL, 4096, 10),
    ("fixed-100us", common::FIXED, 512, 8),
    ("ssd-sata", common::SSD_SATA, 512, 8),
];
const ADDRESSES: usize = 1 << 12;

/// Ten devices and the addresses to ask them for: ten, so that they compete for the caches as members of an array do.
fn bench_set(text: &str, sector_bytes: u32, sectors: u64) -> (Vec<Device>, Vec<u64>) {
    let spec = common::file(text);
    let devices: Vec<Device> = (0..10)
        .map(|i| Device::new(&spec, sector_bytes, PairPricing::Queued, Seed::new(1).child(i)).expect("a shipped file"))
        .collect();
    let mut rng = Seed::new(2).draws();
    let places = devices[0].capacity_sectors() / sectors;
    (devices, (0..ADDRESSES).map(|_| rng.below(places) * sectors).collect())
}

fn service(c: &mut Criterion) {
    let mut group = c.benchmark_group("service");
    group.throughput(Throughput::Elements(1));
    for (name, text, sector_bytes, sectors) in FILES {
        let (mut devices, addresses) = bench_set(text, sector_bytes, sectors);
        let (mut i, mut now) = (0, Instant::ZERO);
        group.bench_function(name, |b| {
            b.iter(|| {
                i += 1;
                let device = &mut devices[i % 10];
                device.handle_op(now, read(i as u64, addresses[i % ADDRESSES], sectors));
                now = device.poll_timeout().unwrap_or(now);
                black_box(device.poll_done(now))
            })
        });
    }
    group.finish();
}

fn queued(c: &mut Criterion) {
    let mut group = c.benchmark_group("queued");
    group.throughput(Throughput::Elements(1));
    for (name, text, sector_bytes, sectors) in FILES {
        let (devices, addresses) = bench_set(text, sector_bytes, sectors);
        let operation = |i: u64| read(i, addresses[i as usize % ADDRESSES], sectors);
        bench_queued(&mut group, name, devices, operation);
    }
    group.finish();
}

/// Devices that are given another operation for each that completes: 32 in flight on each.
fn bench_queued(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut devices: Vec<Device>,
    mut operation: impl FnMut(u64) -> Operation,
) {
    for device in &mut devices {
        (0..32).for_each(|i| device.handle_op(Instant::ZERO, operation(i)));
    }
    let mut i = 0;
    group.bench_function(name, |b| {
        b.iter(|| {
            i += 1;
            let device = &mut devices[i as usize % 10];
            let now = device.poll_timeout().unwrap_or(Instant::ZERO);
            let done = black_box(device.poll_done(now));
            device.handle_op(now, operation(i));
            done
        })
    });
}

/// Random writes to flash drives in their steady state, with all the cleaning: 32 in flight.
fn flash_writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("flash writes");
    group.throughput(Throughput::Elements(1));
    let (devices, _) = bench_set(common::SSD_SATA, 512, 8);
    // Drawn as it goes: a few thousand places written again and again would leave nothing to be moved.
    let (mut rng, places) = (Seed::new(3).draws(), devices[0].capacity_sectors() / 8);
    let write = |i: u64| op(i, OpKind::Write, rng.below(places) * 8, 8);
    bench_queued(&mut group, "ssd-sata", devices, write);
    group.finish();
}

criterion_group!(benches, service, queued, flash_writes);
criterion_main!(benches);
