//! What the models cost, per operation.
//!
//! `service` is one operation through `handle_op` and `poll_done` on an idle device; `queued` holds 32 in flight. Addresses
//! are drawn beforehand: random 8-sector reads over the whole device, and whole tracks for the study's disk.

#![allow(missing_docs)] // The macros of criterion make undocumented functions.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use raidlab_device::{Device, DeviceSpec, PairPricing};
use raidlab_types::{Extent, Instant, OpClass, OpId, OpKind, Operation, Seed};
use std::hint::black_box;

const FILES: [(&str, &str, u32, u64); 4] = [
    ("hdd-7200", include_str!("../../../devices/hdd-7200.toml"), 512, 8),
    ("amdahl6380", include_str!("../../../devices/original/amdahl6380.toml"), 4096, 10),
    ("fixed-100us", include_str!("../../../devices/fixed-100us.toml"), 512, 8),
    ("ssd-sata", include_str!("../../../devices/ssd-sata.toml"), 512, 8),
];
const ADDRESSES: usize = 1 << 12;

fn read(id: usize, lba: u64, sectors: u64) -> Operation {
    Operation {
        id: OpId(id as u64),
        tag: 0,
        leaf: 0,
        kind: OpKind::Read,
        extent: Extent::new(lba, sectors),
        class: OpClass::Foreground,
        priority: 0,
        force_unit_access: false,
        pair_with: None,
    }
}

/// Ten devices and the addresses to ask them for: ten, so that they compete for the caches as members of an array do.
fn bench_set(text: &str, sector_bytes: u32, sectors: u64) -> (Vec<Device>, Vec<u64>) {
    let spec: DeviceSpec = toml::from_str(text).expect("a shipped file");
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
                device.handle_op(now, read(i, addresses[i % ADDRESSES], sectors));
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
        let (mut devices, addresses) = bench_set(text, sector_bytes, sectors);
        for device in &mut devices {
            (0..32).for_each(|i| device.handle_op(Instant::ZERO, read(i, addresses[i], sectors)));
        }
        let mut i = 0;
        group.bench_function(name, |b| {
            b.iter(|| {
                i += 1;
                let device = &mut devices[i % 10];
                let now = device.poll_timeout().unwrap_or(Instant::ZERO);
                let done = black_box(device.poll_done(now));
                device.handle_op(now, read(i, addresses[i % ADDRESSES], sectors));
                done
            })
        });
    }
    group.finish();
}

/// Random writes to flash drives in their steady state, with all the cleaning: 32 in flight.
fn flash_writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("flash writes");
    group.throughput(Throughput::Elements(1));
    let (mut devices, _) = bench_set(include_str!("../../../devices/ssd-sata.toml"), 512, 8);
    // Drawn as it goes: a few thousand places written again and again would leave nothing to be moved.
    let (mut rng, places) = (Seed::new(3).draws(), devices[0].capacity_sectors() / 8);
    let mut write = |i: usize| Operation { kind: OpKind::Write, ..read(i, rng.below(places) * 8, 8) };
    for device in &mut devices {
        (0..32).for_each(|i| device.handle_op(Instant::ZERO, write(i)));
    }
    let mut i = 0;
    group.bench_function("ssd-sata", |b| {
        b.iter(|| {
            i += 1;
            let device = &mut devices[i % 10];
            let now = device.poll_timeout().unwrap_or(Instant::ZERO);
            let done = black_box(device.poll_done(now));
            device.handle_op(now, write(i));
            done
        })
    });
    group.finish();
}

criterion_group!(benches, service, queued, flash_writes);
criterion_main!(benches);
