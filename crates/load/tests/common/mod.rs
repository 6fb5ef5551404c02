//! A small simulator to drive a load: a heap of completions and a virtual clock.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers here are small")]
#![allow(dead_code)] // Each test file uses its own part of it.

pub(crate) use raidlab_load::Generator;
use raidlab_load::{
    AddressSpec, Align, Limit, Limits, Load, LoadSpec, SizeSpec, SpecError, Volume, VolumeSpec, WorkloadSpec,
};
use raidlab_types::{Instant, Request, Seed};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) const VOLUME: Volume = Volume { capacity_sectors: 1 << 24 };
pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn workload() -> WorkloadSpec {
    WorkloadSpec {
        read_fraction: 0.7,
        size: SizeSpec::Fixed { bytes: 8192 },
        address: AddressSpec::Uniform {},
        align: Some(Align::Bytes(8192)),
        volumes: VolumeSpec::Uniform,
        span: None,
        task: None,
    }
}

pub(crate) fn requests(warmup: u64, measure: u64) -> Limits {
    let limit = |requests| Limit { requests: Some(requests), duration_s: None };
    Limits { warmup: limit(warmup), measure: limit(measure) }
}

pub(crate) fn load(load: &LoadSpec, workload: &WorkloadSpec, limits: &Limits) -> Load {
    try_load(load, workload, limits).unwrap()
}

pub(crate) fn try_load(load: &LoadSpec, workload: &WorkloadSpec, limits: &Limits) -> Result<Load, SpecError> {
    Load::new(load, workload, limits, &[VOLUME], 512, Seed::new(1))
}

/// A request as it was driven, in order of issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IssuedRequest {
    pub request: Request,
    pub issued_ns: u64,
}

/// What an array does with a request: when it completes, and whether it succeeds.
pub(crate) trait Array {
    fn serve(&mut self, now_ns: u64, request: &Request) -> (u64, bool);
}

impl<F: FnMut(u64, &Request) -> u64> Array for F {
    fn serve(&mut self, now_ns: u64, request: &Request) -> (u64, bool) {
        (self(now_ns, request), true)
    }
}

/// One server, first come first served, with a service time of `service_ns` drawn exponentially from `seed`.
pub(crate) fn single_server(service_ns: f64, seed: u64) -> impl FnMut(u64, &Request) -> u64 {
    let (mut free_at, mut rng) = (0u64, Seed::new(seed).draws());
    move |now, _| {
        let service = (-libm_log(rng.unit_positive()) * service_ns) as u64;
        free_at = free_at.max(now) + service;
        free_at
    }
}

/// The test's own logarithm need not be the same everywhere: only its distribution matters here.
#[allow(clippy::disallowed_methods)]
fn libm_log(x: f64) -> f64 {
    x.ln()
}

/// Drives `load` to its end, calling `watch` after every round of polling; what was issued.
pub(crate) fn drive<L: Generator>(
    load: &mut L,
    array: &mut impl Array,
    mut watch: impl FnMut(&L, u64),
) -> Vec<IssuedRequest> {
    let mut completions = BinaryHeap::new();
    let (mut now, mut driven) = (0u64, Vec::new());
    loop {
        while let Some(request) = load.poll_request(Instant::from_ns(now)) {
            let (at, ok) = array.serve(now, &request);
            completions.push(Reverse((at, driven.len(), request.tag, ok)));
            driven.push(IssuedRequest { request, issued_ns: now });
        }
        watch(load, now);
        if load.is_finished() {
            return driven;
        }
        let timeout = load.poll_timeout().map(Instant::as_ns);
        let next = completions.peek().map(|Reverse((at, ..))| *at);
        now = timeout.into_iter().chain(next).min().expect("a load that is not finished waits for something");
        while let Some(Reverse((_, _, tag, ok))) = completions.peek().copied().filter(|Reverse((at, ..))| *at <= now) {
            completions.pop();
            load.handle_done(Instant::from_ns(now), tag, ok);
        }
    }
}
