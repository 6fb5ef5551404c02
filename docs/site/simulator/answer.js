// Who serves the work best, in the words of reports and by their rules (raidlab's `report/answer.py`).

const listed = (items) => (items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`);
const significant = (value, digits) => String(Number(value.toPrecision(digits)));
const shortTime = (ms) => (ms < 1000 ? `${significant(ms, 3)} ms` : `${Math.round(ms).toLocaleString("en")} ms`);
const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// A figure by three digits.
function number(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en");
  return size >= 10 ? value.toFixed(1) : size >= 0.09995 ? value.toFixed(2) : significant(value, 3);
}

// Student's 95 % interval of a mean; null for fewer than two values.
function interval(values) {
  const n = values.length;
  if (n < 2) return null;
  const mean = meanOf(values);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const half = data.student[n - 2] * Math.sqrt(variance / n);
  return [mean - half, mean + half];
}

// Of one thing to another over paired repeats.
function ratioInterval(own, other) {
  if (own.length !== other.length) return null;
  const ends = interval(own.map((value, i) => Math.log(value / other[i])));
  return ends && ends.map(Math.exp);
}

// Whether one is shown to be behind another: by a margin and, where there are repeats, beyond their noise.
function isBehind(one, best) {
  if (best.percent - one.percent < data.nothing_shown_percent) return false;
  const ends = ratioInterval(best.rates, one.rates);
  return !(ends && ends[0] <= 1 && 1 <= ends[1]);
}

const share = ({ percent, rates }, reference) => {
  const ends = ratioInterval(rates, reference.rates);
  if (!ends) return `${percent.toFixed(0)} %`;
  return `${percent.toFixed(0)} %, 95 % interval ${(100 * ends[0]).toFixed(0)} to ${(100 * ends[1]).toFixed(0)}`;
};

// `rows`: name, percent of the reference's, rates of each repeat; the reference first.
function clauseOf(rows) {
  const [reference] = rows;
  const ranked = rows.slice(1).sort((a, b) => b.percent - a.percent);
  const best = ranked[0];
  const end = ranked.findIndex((row) => isBehind(row, best));
  const peers = end < 0 ? ranked : ranked.slice(0, end);
  const order = Object.keys(data.verbs);
  const standingOf = (row) => (isBehind(reference, row) ? "ahead" : isBehind(row, reference) ? "behind" : "level");
  const standing = standingOf(best);
  if (peers.length === ranked.length && peers.every((row) => standingOf(row) === "level")) {
    const percents = rows.map(({ percent }) => percent);
    return `no difference is shown in ${data.workload} (${Math.min(...percents).toFixed(0)}-${Math.max(...percents).toFixed(0)} %)`;
  }
  // Of two the one that leads is the answer, the reference too.
  if (rows.length === 2 && standing === "behind") {
    return `${reference.name} ${data.verbs.ahead[0]} in ${data.workload} (${best.name} has ${share(best, reference)})`;
  }
  const level = peers.filter((row) => order.indexOf(standingOf(row)) <= order.indexOf(standing));
  const led = standing === "ahead" ? [reference] : [];
  const others = [...ranked.filter((row) => !level.includes(row)), ...led].sort((a, b) => b.percent - a.percent);
  const unsure = standing === "level" && Math.abs(best.percent - 100) >= data.nothing_shown_percent;
  const plural = level.length > 1;
  const verb = unsure ? data.unsure[best.percent > 100 ? "above" : "below"] : data.verbs[standing][Number(plural)];
  const next = others.length > led.length ? `; next is ${others[0].name} with ${others[0].percent.toFixed(0)} %` : "";
  return `${listed(level.map(({ name }) => name))} ${verb} in ${data.workload} (${share(best, reference)}${next})`;
}

// The sentence of the card. `loaded` are rows at the deepest queue, `held` rows at the target, or null at a depth.
function sentenceOf(settings, loaded, held) {
  const depth = depthsOf(settings).at(-1);
  const atLoad = `at queue depth ${depth}`;
  let basis = atLoad;
  let rows = loaded;
  if (settings.goal === "p90") {
    const missed = held.filter(({ kind }) => kind === "always_exceeded").map(({ name }) => name);
    const below = held.filter(({ kind }) => kind === "never_exceeded").map(({ name }) => name);
    if (missed.length) {
      basis = `${atLoad} in ${data.workload} (${listed(missed)} ${missed.length > 1 ? "miss" : "misses"} the target even with one request at a time)`;
    } else if (below.length) {
      basis = `${atLoad} in ${data.workload} (${listed(below)} ${below.length > 1 ? "stay" : "stays"} below the target at every depth tried)`;
    } else {
      basis = `at the same p90 of response time (${shortTime(settings.p90_ms)})`;
      rows = held;
    }
  }
  if (rows.length < 2) return "";
  const most = rows[0].rate;
  const shares = rows.map((row) => ({ ...row, percent: (100 * row.rate) / most }));
  const reference = rows[0].tolerance === 0 ? `${rows[0].name}, which has no redundancy${settings.gone ? " left" : ""}` : rows[0].name;
  return `Throughput per disk ${basis}, as a share of ${reference}: ${clauseOf(shares)}.`;
}

// What can be believed of it: the checks of a report that a page can make, in their words.
function findingsOf(settings, points, held, repeats) {
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const found = [];
  if (repeats < data.full.repeats) return found;
  const spreadOf = ({ rates }) => (100 * (Math.max(...rates) - Math.min(...rates))) / meanOf(rates);
  const spreads = points.map(spreadOf).sort((a, b) => a - b);
  const worst = points.find((point) => spreadOf(point) === spreads.at(-1));
  const wide = spreads.filter((spread) => spread > data.wide_percent).length;
  const values = {
    repeats, median: spreads[Math.floor(spreads.length / 2)].toFixed(1), worst: spreads.at(-1).toFixed(0), wide, points: points.length,
    limit: significant(data.wide_percent, 6), array: worst.name, workload: data.workload, level: `queue depth ${worst.depth}`,
  };
  const evidence = `${filled(data.checks.repeated + (wide ? data.checks.wide : ""), values)}.`;
  found.push({ check: "single_run", verdict: wide ? "WARN" : "PASS", evidence });
  const below = (held ?? []).filter(({ kind }) => kind === "never_exceeded");
  // A search is each repeat's, though all of them search together.
  if (held?.length) {
    const one = below[0];
    const said = one && {
      short: below.length * repeats, searches: held.length * repeats, depth: significant(one.depth, 6), percentile: 90,
      target_ms: significant(settings.p90_ms, 6), array: one.name, workload: data.workload,
    };
    found.push(one
      ? { check: "target_never_reached", verdict: "WARN", evidence: filled(data.checks.below_target, said) }
      : { check: "target_never_reached", verdict: "PASS", evidence: filled(data.checks.met_target, { searches: held.length * repeats }) });
  }
  return found;
}
