//! Throughput of every kernel on every backend, at 4 KiB, 64 KiB and 1 MiB a block, from cache.
//!
//! Bytes counted are those of the data blocks (eight of them), as for a stripe of 8+1 or 8+2.
//! Run with `cargo bench -p raidlab-parity --bench kernels`; `-- pq/65536` narrows it down.

use criterion::{BenchmarkId, Criterion, Throughput};
use raidlab_parity::{available, gf, Backend};
use std::time::Duration;

const DATA: usize = 8;
/// Blocks start on pages, as direct I/O has them.
const PAGE: usize = 4096;
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

type Run = fn(Backend, &mut [u8], &mut [u8], &[&[u8]]);

/// The kernels, each as the array uses it.
const KERNELS: [(&str, Run); 4] = [
    ("xor", |backend, p, _, data| backend.xor(p, data)),
    ("pq", |backend, p, q, data| backend.pq(p, q, data)),
    // As for one lost data block by Q: seven others and Q.
    ("combine", |backend, out, _, inputs| backend.combine(out, inputs, &powers(1))),
    // As for two lost data blocks: six others, P and Q.
    ("combine2", |backend, out0, out1, inputs| backend.combine2(out0, out1, inputs, &powers(1), &powers(100))),
];

/// Coefficients that no kernel can spare itself.
fn powers(first: usize) -> [u8; DATA] {
    std::array::from_fn(|i| gf::exp(first + i))
}

fn kernels(criterion: &mut Criterion) {
    for (name, run) in KERNELS {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(800));
        for size in SIZES {
            group.throughput(Throughput::Bytes((DATA * size) as u64));
            let mut memory = vec![0; (DATA + 2) * size + PAGE];
            let start = memory.as_ptr().align_offset(PAGE);
            let (data, parity) = memory[start..][..(DATA + 2) * size].split_at_mut(DATA * size);
            data.chunks_mut(size).enumerate().for_each(|(i, block)| block.fill(gf::exp(i)));
            let data: Vec<&[u8]> = data.chunks(size).collect();
            let (p, q) = parity.split_at_mut(size);
            for backend in available() {
                let id = BenchmarkId::new(backend.name(), size);
                group.bench_function(id, |bencher| bencher.iter(|| run(backend, p, q, &data)));
            }
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    kernels(&mut criterion);
    criterion.final_summary();
}
