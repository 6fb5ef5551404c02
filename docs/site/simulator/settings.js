// What is asked: the settings, their place in the page's address, and the arrays that follow from them.

// The order of levels is that of their colours. `members`: how many disks give the space of `space` of them.
const LEVELS = {
  raid0: { title: "RAID 0", members: (space) => space },
  raid10: { title: "RAID 10", members: (space) => 2 * space },
  raid5: { title: "RAID 5", members: (space) => space + 1 },
  raid6: { title: "RAID 6", members: (space) => space + 2 },
  raid50: { title: "RAID 50", members: (space) => space + 2 },
  raid60: { title: "RAID 60", members: (space) => space + 4 },
  raid1: { title: "RAID 1", members: (space) => space + 1, unchunked: true },
};
const KIB = 1024;
// Sliders move along lists; a link may have what lies between.
const STEPS = {
  chunk: [16, 32, 64, 128, 256, 512, 1024].map((kib) => kib * KIB),
  size: [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096].map((kib) => kib * KIB),
  depth: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  p90_ms: [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100, 120, 150, 200, 300, 500, 1000, 2000, 5000],
};
const MOST_DISKS = 24;
const MOST_GONE = 2;
// Of so many disks one must be left.
const mostGone = ({ equal, disks }) => (equal === "members" ? Math.min(MOST_GONE, disks - 1) : MOST_GONE);
const DEFAULTS = {
  device: "hdd-7200", disks: 6, gone: 0, equal: "members", levels: ["raid0", "raid10", "raid5", "raid6"], chunk: 64 * KIB,
  read: 70, size: 8 * KIB, pattern: "random", goal: "depth", depth: 16, p90_ms: 50,
};

// A size as study files write it.
const bytesText = (bytes) => (bytes % (KIB * KIB) === 0 ? `${bytes / KIB / KIB}MiB` : `${bytes / KIB}KiB`);
const timeText = (ms) => (ms < 1 ? `${Math.round(ms * 1000)}us` : `${ms}ms`);
// The same as people read them.
const bytesShown = (bytes) => bytesText(bytes).replace(/(?=[KM]iB)/, "\u00a0");
const timeShown = (ms) => timeText(ms).replace("us", "\u00a0µs").replace(/(?<=\d)ms/, "\u00a0ms");

const bytesOf = (text) => {
  const found = /^(\d+)(KiB|MiB)$/.exec(text);
  return found ? Number(found[1]) * (found[2] === "MiB" ? KIB * KIB : KIB) : NaN;
};
const msOf = (text) => {
  const found = /^([\d.]+)(us|ms|s)$/.exec(text);
  return found ? Number(found[1]) * { us: 0.001, ms: 1, s: 1000 }[found[2]] : NaN;
};
const nearest = (steps, value) =>
  steps.reduce((best, step) => (Math.abs(Math.log(step / value)) < Math.abs(Math.log(best / value)) ? step : best));

// The part of the address behind `#`: words, not code, so that a link can be read and written by hand.
function linkOf(settings) {
  const goal = settings.goal === "p90" ? { p90: timeText(settings.p90_ms) } : {};
  const gone = settings.gone ? { gone: settings.gone } : {};
  const words = {
    device: settings.device, disks: settings.disks, ...gone, equal: settings.equal, levels: settings.levels.join(","),
    chunk: bytesText(settings.chunk), read: settings.read, size: bytesText(settings.size), pattern: settings.pattern,
    depth: settings.depth, ...goal,
  };
  return `#${Object.entries(words).map(([key, value]) => `${key}=${value}`).join("&")}`;
}

// Settings from an address. What is not there, or makes no sense, is as at the beginning, and is named.
function settingsOf(hash) {
  const settings = { ...DEFAULTS };
  const strange = [];
  const readers = {
    device: (text) => (Object.hasOwn(data.devices, text) ? { device: text } : null),
    disks: (text) => (/^\d+$/.test(text) && text >= 1 && text <= MOST_DISKS ? { disks: Number(text) } : null),
    gone: (text) => (/^\d+$/.test(text) && text <= MOST_GONE ? { gone: Number(text) } : null),
    equal: (text) => (["members", "user_capacity"].includes(text) ? { equal: text } : null),
    levels: (text) => {
      const named = text.split(",");
      const known = Object.keys(LEVELS).filter((one) => named.includes(one));
      return named.every((name) => known.includes(name)) ? { levels: known } : null;
    },
    chunk: (text) => (bytesOf(text) > 0 ? { chunk: bytesOf(text) } : null),
    read: (text) => (text.trim() && text >= 0 && text <= 100 ? { read: Math.round(Number(text)) } : null),
    size: (text) => (bytesOf(text) > 0 ? { size: bytesOf(text) } : null),
    pattern: (text) => (Object.hasOwn(data.patterns, text) ? { pattern: text } : null),
    depth: (text) => (/^\d+$/.test(text) && text >= 1 && text <= STEPS.depth.at(-1) ? { depth: Number(text) } : null),
    p90: (text) => (msOf(text) > 0 ? { goal: "p90", p90_ms: msOf(text) } : null),
  };
  for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const found = Object.hasOwn(readers, key) ? readers[key](text) : null;
    if (found) Object.assign(settings, found);
    else strange.push(`${key}=${text}`);
  }
  if (settings.gone > mostGone(settings)) {
    strange.push(`gone=${settings.gone}`);
    settings.gone = mostGone(settings);
  }
  return { settings, strange };
}

// The arrays that are asked for: name, tree and facts of each, or why it cannot be made.
function arraysOf(settings) {
  const device = data.devices[settings.device];
  return settings.levels.map((name) => {
    const { members, unchunked } = LEVELS[name];
    const disks = settings.equal === "members" ? settings.disks : members(settings.disks);
    const text = `${name}(${disks}${unchunked ? "" : `, chunk=${bytesText(settings.chunk)}`})`;
    if (unchunked && settings.equal !== "members" && settings.disks > 1) {
      return { name, text, disks, mistake: "RAID 1 has the space of one disk, however many there are" };
    }
    const told = ask("tree", { text, member_bytes: device.capacity_bytes, sector_bytes: device.sector_bytes });
    if (told.error) return { name, text, disks, mistake: told.error.message };
    const { tree, tolerance: borne } = told.answer;
    const sets = setsOf(disks, settings.gone);
    const served = sets.filter((missing) => !isLost(tree, missing));
    const which = settings.gone === 1 ? "a disk" : `any ${settings.gone} disks`;
    if (!served.length) return { name, text, disks, mistake: `its data are lost with ${which}` };
    // The first in order are as close together as may be: what is left bears the least, `tolerance` more.
    const gone = { missing: served[0], sets: sets.length, fatal: sets.length - served.length };
    return { name, text, disks, ...told.answer, ...gone, borne, tolerance: Math.max(0, borne - settings.gone) };
  });
}

// All sets of so many disks, in order.
function setsOf(disks, size, from = 0) {
  if (!size) return [[]];
  return Array.from({ length: disks - from }, (_, i) => from + i)
    .flatMap((first) => setsOf(disks, size - 1, first + 1).map((others) => [first, ...others]));
}

// Whether a tree's data are lost without some members, which are numbered in the order of the tree; `next` is the next one.
function isLost(tree, missing, next = { leaf: 0 }) {
  if (tree.kind === "member") return missing.includes(next.leaf++);
  const lost = tree.children.map((child) => isLost(child, missing, next));
  // Of an odd number of disks (RAID 10): each chunk lies on a child and on the next one, all around.
  if (tree.kind === "copies") return lost.some((one, i) => one && lost[(i + 1) % lost.length]);
  const borne = { stripe: 0, mirror: lost.length - 1, parity: tree.parities }[tree.kind];
  return lost.filter(Boolean).length > borne;
}

const depthsOf = ({ goal, depth }) =>
  goal === "p90" ? STEPS.depth.filter((one) => one <= data.swept_to) : [...STEPS.depth.filter((one) => one < depth), depth];
