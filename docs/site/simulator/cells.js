// Cells as a study of the same settings has them, to the last bit of their seeds.

const MASK = (1n << 64n) - 1n;
const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n, 0x510e527fade682d1n,
  0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => [...row].map((digit) => parseInt(digit, 16)));

// The first eight bytes of BLAKE2b (RFC 7693) of a text shorter than a block.
function blake2b64(text) {
  const bytes = new Uint8Array(128);
  const { written } = new TextEncoder().encodeInto(text, bytes);
  const words = new BigUint64Array(16);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < 16; i += 1) words[i] = view.getBigUint64(8 * i, true);
  const h = IV.with(0, IV[0] ^ 0x01010008n);
  const v = [...h, ...IV];
  v[12] ^= BigInt(written);
  v[14] ^= MASK;
  const turned = (x, by) => ((x >> by) | (x << (64n - by))) & MASK;
  const mix = (a, b, c, d, x, y) => {
    v[a] = (v[a] + v[b] + x) & MASK;
    v[d] = turned(v[d] ^ v[a], 32n);
    v[c] = (v[c] + v[d]) & MASK;
    v[b] = turned(v[b] ^ v[c], 24n);
    v[a] = (v[a] + v[b] + y) & MASK;
    v[d] = turned(v[d] ^ v[a], 16n);
    v[c] = (v[c] + v[d]) & MASK;
    v[b] = turned(v[b] ^ v[c], 63n);
  };
  const columns = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];
  for (let round = 0; round < 12; round += 1) {
    const s = SIGMA[round % 10];
    columns.forEach((at, i) => mix(...at, words[s[2 * i]], words[s[2 * i + 1]]));
  }
  return h[0] ^ v[0] ^ v[8];
}

// The bytes of the digest are read as a number that begins with the first.
function seedOf(...path) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, blake2b64(path.join("\x1f")), true);
  return view.getBigUint64(0, false) >> 1n;
}

const CELL_SEED = /"seed":0(?=[,}])/;

// The text of a cell. `amount` is how much is run: `data.quick` or `data.full`.
function cellText(settings, array, depth, repeat, amount) {
  const device = data.devices[settings.device];
  const cell = {
    ...data.cell, seed: 0, sector_bytes: device.sector_bytes, tree: array.tree, members: [device.parameters],
    load: { kind: "closed", depth },
    workload: {
      ...data.cell.workload, read: settings.read / 100, size: { kind: "fixed", bytes: settings.size },
      address: data.patterns[settings.pattern].address,
    },
    warmup: { requests: Math.max(amount.warmup, data.warmup_rounds * depth) },
    measure: { requests: Math.max(amount.measure, data.measure_rounds * depth) },
    fill_caches: amount.fill_caches,
    ...(array.missing.length ? { missing: array.missing } : {}),
  };
  // A seed has 63 bits, a number of JavaScript's 53.
  const seed = seedOf(data.seed, data.workload, `closed=${depth}`, repeat);
  return JSON.stringify(cell).replace(CELL_SEED, `"seed":${seed}`);
}
