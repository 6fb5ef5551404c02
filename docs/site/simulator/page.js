// The page: settings in, cells to the workers, figures out. What is asked for last is answered first.

const byId = (id) => document.getElementById(id);
let settings, arrays, pool;
// Answers of cells by their text; the oldest go first.
const known = new Map();
const MOST_KNOWN = 4000;
// Grows with every change; what was begun before it is not gone on with.
let turn = 0;
let phase = "";

async function answerOf(text) {
  if (known.has(text)) return known.get(text);
  const told = await pool.run("run_cell", text);
  if (told) {
    known.set(text, told);
    if (known.size > MOST_KNOWN) known.delete(known.keys().next().value);
  }
  return told;
}

const soundArrays = () => arrays.filter((array) => !array.mistake);

// All repeats of a point that are there, merged: rates and percentiles of each, and of all together.
function pointOf(array, depth, amount) {
  const repeats = Array.from({ length: amount.repeats }, (_, repeat) => known.get(cellText(settings, array, depth, repeat, amount))?.answer);
  const there = repeats.filter(Boolean);
  if (!there.length) return null;
  const disks = settings.equal === "members" ? 1 : array.disks;
  const rates = there.map(({ bytes, elapsed_ns }) => bytes / (elapsed_ns / 1e9) / 1e6 / disks);
  const total = (key) => there.reduce((sum, one) => sum + one[key], 0);
  const times = added(there.flatMap((one) => one.times));
  const each = there.map((one) => percentileOf(added(one.times), 90) / 1e6);
  return {
    name: array.name, depth, rates, rate: total("bytes") / (total("elapsed_ns") / 1e9) / 1e6 / disks, mean: meanOf(rates), ends: interval(rates),
    iops: total("requests") / (total("elapsed_ns") / 1e9), repeats: there.length, first: amount === data.quick,
    p50_ms: percentileOf(times, 50) / 1e6, p90_ms: percentileOf(times, 90) / 1e6, p99_ms: percentileOf(times, 99) / 1e6,
    p90_ends: interval(each), requests: total("requests"),
  };
}

// Histograms added up: values in ascending order, each with how often it occurred.
function added(histograms) {
  const counts = new Map();
  for (const { value_ns, count } of histograms) {
    value_ns.forEach((value, i) => counts.set(value, (counts.get(value) ?? 0) + count[i]));
  }
  return [...counts].sort(([a], [b]) => a - b);
}

// The smallest value that so large a share of all does not exceed.
function percentileOf(times, percentile) {
  const total = times.reduce((sum, [, count]) => sum + count, 0);
  const wanted = Math.max(1, Math.ceil((percentile / 100) * total));
  let seen = 0;
  return times.find(([, count]) => (seen += count) >= wanted)?.[0] ?? 0;
}

// The best that is known of a point.
const shownPoint = (array, depth) => pointOf(array, depth, data.full) ?? pointOf(array, depth, data.quick);

// The next step of a search for the target, and what it found; only points with all their repeats count.
function searched(array, amount) {
  const whole = (depth) => {
    const point = pointOf(array, depth, amount);
    return point?.repeats === amount.repeats ? point : null;
  };
  const points = [];
  for (;;) {
    const question = {
      percentile: 90, target_ns: Math.round(settings.p90_ms * 1e6), max_depth: data.max_depth,
      points: points.map((point) => ({ depth: point.depth, percentile_ns: Math.round(point.p90_ms * 1e6), throughput: point.mean })),
    };
    const { answer } = ask("search", question);
    if (!answer.next) return { ...heldPoint(array, answer.found, points) };
    const point = whole(answer.next);
    if (!point) return { next: answer.next };
    points.push(point);
  }
}

// What is held, with each repeat's own throughput at the depth that all together agree on.
function heldPoint(array, found, points) {
  const at = (end) => end && points.find(({ depth }) => depth === end.depth);
  const [lower, upper] = [at(found.lower) ?? at(found.upper), at(found.upper) ?? at(found.lower)];
  const part = upper.depth === lower.depth ? 0 : (found.depth - lower.depth) / (upper.depth - lower.depth);
  const mixed = (key) => lower[key] + part * (upper[key] - lower[key]);
  const rates = lower.rates.map((rate, i) => rate + part * (upper.rates[i] - rate));
  return {
    kind: found.kind, depth: found.depth, rates, rate: meanOf(rates), ends: interval(rates), repeats: rates.length, first: lower.first,
    iops: mixed("iops"), p50_ms: mixed("p50_ms"), p90_ms: settings.p90_ms, p99_ms: mixed("p99_ms"),
  };
}

const heldOf = (array) => {
  const full = searched(array, data.full);
  return full.next ? searched(array, data.quick) : full;
};

// A first look at everything, then every repeat of everything; within each what is judged comes first.
async function refine() {
  turn += 1;
  const mine = turn;
  pool.forget();
  const depths = depthsOf(settings);
  const order = settings.goal === "p90" ? depths : [depths.at(-1), ...depths.slice(0, -1)];
  for (const amount of [data.quick, data.full]) {
    for (let repeat = 0; repeat < amount.repeats; repeat += 1) {
      phase = amount === data.quick ? "a first look" : `repeat ${repeat + 1} of ${amount.repeats}`;
      await everywhere(mine, order, repeat, amount);
      if (mine !== turn) return;
    }
    if (settings.goal === "p90") await Promise.all(soundArrays().map((array) => hold(mine, array, amount)));
    if (mine !== turn) return;
  }
  phase = "";
  redraw();
}

function everywhere(mine, depths, repeat, amount) {
  const texts = depths.flatMap((depth) => soundArrays().map((array) => cellText(settings, array, depth, repeat, amount)));
  return Promise.all(texts.map((text) => answerOf(text).then((told) => mine === turn && took(told))));
}

async function hold(mine, array, amount) {
  for (;;) {
    const { next } = searched(array, amount);
    if (!next || mine !== turn) return;
    const repeats = Array.from({ length: amount.repeats }, (_, repeat) => cellText(settings, array, next, repeat, amount));
    const answers = await Promise.all(repeats.map(answerOf));
    if (answers.some((told) => !told || told.error)) return;
    if (mine === turn) redraw();
  }
}

function took(told) {
  if (told?.error) byId("mistake").textContent = `${told.error.key ? `${told.error.key}: ` : ""}${told.error.message}`;
  redraw();
}

let asked_for_drawing = false;
function redraw() {
  if (asked_for_drawing) return;
  asked_for_drawing = true;
  requestAnimationFrame(() => {
    asked_for_drawing = false;
    show();
  });
}

function show() {
  const sound = soundArrays();
  const unit = settings.equal === "members" ? "MB/s" : "MB/s per disk";
  const isHeld = settings.goal === "p90";
  const lines = sound.map((array) => ({
    name: array.name, points: depthsOf(settings).map((depth) => shownPoint(array, depth)).filter(Boolean),
  }));
  const judged = sound.map((array) => {
    const point = isHeld ? heldOf(array) : shownPoint(array, settings.depth);
    return { array, point: point && !point.next ? point : null };
  });
  const held = isHeld ? judged.filter(({ point }) => point?.kind === "between").map(({ array, point }) => ({ name: array.name, ...point })) : [];
  const target_ms = isHeld ? settings.p90_ms : null;
  // What is seen stays, fainter, until every level has something to show in its place.
  const isNew = lines.every(({ points }) => points.length);
  byId("curves").classList.toggle("stale", !isNew);
  if (isNew) {
    draw(byId("curves"), { lines, held, target_ms, chosen: isHeld ? null : settings.depth, unit });
  }
  byId("legend").replaceChildren(...sound.map(({ name }) => cellOf("span", [swatch(name), ` ${LEVELS[name].title}`])));
  byId("figures").replaceChildren(...rowsOf(judged));
  tell(sound, judged);
}

const cellOf = (name, text, attributes = {}) => {
  const cell = document.createElement(name);
  cell.append(...[text].flat());
  for (const [key, value] of Object.entries(attributes)) cell.setAttribute(key, value);
  return cell;
};

function terabytes(bytes) {
  return bytes >= 1e12 ? `${significant(bytes / 1e12, 3)}\u00a0TB` : `${(bytes / 1e9).toFixed(0)}\u00a0GB`;
}

function plusMinus(values, mean) {
  const ends = interval(values);
  if (!ends || !mean) return [];
  // As many places as the mean has; a digit where that leaves none.
  const half = (ends[1] - ends[0]) / 2;
  const rounded = half.toFixed((number(mean).split(".")[1] ?? "").length);
  return [` ±${Number(rounded) ? rounded : significant(half, 1)}`];
}

const BOUNDS = { always_exceeded: "over the target even with one request at a time", never_exceeded: "or more: below the target at every depth tried" };

function rowsOf(judged) {
  return arrays.map((array) => {
    const row = document.createElement("tr");
    const name = cellOf("th", [swatch(array.name), ` ${LEVELS[array.name].title}`], { scope: "row" });
    if (array.mistake) {
      row.append(name, cellOf("td", array.disks), cellOf("td", `cannot be: ${array.mistake}`, { class: "l wrap", colspan: 7 }));
      return row;
    }
    const point = judged.find((one) => one.array === array)?.point;
    const facts = [array.disks, terabytes(array.user_bytes), array.tolerance || "none"].map((text) => cellOf("td", String(text)));
    if (point?.kind === "always_exceeded") {
      row.append(name, ...facts, cellOf("td", BOUNDS.always_exceeded, { class: "l wrap", colspan: 5 }));
      return row;
    }
    const bound = point?.kind === "never_exceeded" ? ` ${BOUNDS.never_exceeded}` : "";
    const soft = (text) => (text.length ? [cellOf("span", text, { class: "soft" })] : []);
    const rate = point ? cellOf("td", [cellOf("b", number(point.rate)), ...soft(plusMinus(point.rates, point.rate)), ...(bound ? soft([bound]) : [])], bound ? { class: "wrap" } : {}) : cellOf("td", "…");
    const times = ["p50_ms", "p90_ms", "p99_ms"].map((key) => cellOf("td", point ? number(point[key]) : "…"));
    row.append(name, ...facts, rate, cellOf("td", point ? number(point.iops) : "…"), ...times);
    if (point?.first) row.className = "reference";
    return row;
  });
}

// What stands in the place of an answer where there are no two to compare.
function withoutAnswer(sound) {
  if (settings.levels.length < 2) return "Choose two levels.";
  return `Of ${listed(settings.levels)} ${sound.length ? `only ${sound[0].name}` : "none"} can be; the table says why.`;
}

// How often what is gone would be the end of an array that is shown without. Of single disks it is all of them or none.
function fatalWords(sound) {
  const split = sound.filter(({ fatal }) => fatal);
  if (!split.length) return "";
  const lost = split.map(({ name, sets, fatal }) => `${fatal} of the ${sets} pairs of disks of ${name}`);
  const shown = split.map(({ name, missing }) => `${listed(missing)} of ${name}`);
  return `Data are lost with ${listed(lost)}. Gone here are others, counted from 0: ${shown.join(", ")}.`;
}

// The sentences: the answer, how sure it is, what is to be known first.
function tell(sound, judged) {
  const isHeld = settings.goal === "p90";
  const last = depthsOf(settings).at(-1);
  const rowAt = ({ name, tolerance }, point) => point && { ...point, name, tolerance };
  const loaded = sound.map((array) => rowAt(array, shownPoint(array, last)));
  const held = isHeld ? judged.map(({ array, point }) => rowAt(array, point)) : null;
  const isRun = sound.length > 0 && loaded.every(Boolean) && (!isHeld || held.every(Boolean));
  const isThere = isRun && sound.length > 1;
  const rows = isThere ? (isHeld ? held : loaded) : [];
  const repeats = rows.length ? Math.min(...rows.map((row) => row.repeats)) : 0;
  const isFirst = rows.some(({ first }) => first);
  const sentence = isThere ? sentenceOf(settings, loaded, held) : "";
  const headline = byId("headline");
  if (isThere || sound.length < 2) headline.textContent = sentence || withoutAnswer(sound);
  headline.classList.toggle("soft", !isThere);
  // Said once, when it is settled, to whoever listens.
  if (!phase) byId("announced").textContent = headline.textContent;
  const borne = sound.map(({ name, tolerance }) => `${tolerance || "none"} of ${name}`).join(", ");
  byId("borne").textContent = borne && `Members that may fail, whichever: ${borne}.`;
  byId("fatal").textContent = fatalWords(sound);
  byId("sureness").textContent = !isThere ? "" : isFirst ? data.words.quick
    : repeats < 2 ? data.words.once : sentence.includes("interval") ? `Intervals are of ${repeats} repeats of each cell.` : "";
  const left = pool.left();
  const ended = isRun ? "Done: these are the figures of the study below." : sound.length ? "" : "Done: there is nothing to run.";
  byId("state").textContent = phase ? `Working: ${phase}${left > 1 ? `, ${left} cells to go` : ""}.` : ended;
  const points = sound.flatMap((array) => depthsOf(settings).map((depth) => pointOf(array, depth, data.full))).filter(Boolean);
  const findings = isThere && !isFirst && !phase ? findingsOf(settings, points, held, repeats) : [];
  byId("findings").replaceChildren(...findings.map(({ check, verdict, evidence }) => {
    const line = document.createElement("p");
    line.className = "care";
    line.append(cellOf("span", verdict, { class: verdict }), " ", cellOf("b", check), `: ${evidence}`);
    return line;
  }));
}

// Controls show the settings, and change them.
function paint() {
  const { device, disks, gone, equal, chunk, read, size, pattern, goal, depth, p90_ms } = settings;
  byId("device").value = device;
  byId("pattern").value = pattern;
  const range = (id, value, text) => {
    byId(id).value = value;
    byId(id).setAttribute("aria-valuetext", text);
    byId(`${id}-shown`).textContent = text;
  };
  range("disks", disks, equal === "members" ? `${disks}` : `${disks} of data`);
  byId("gone").max = mostGone(settings);
  range("gone", gone, gone ? `${gone}` : "none");
  range("read", read, `${read}\u00a0%`);
  for (const [id, text] of [["chunk", bytesShown(chunk)], ["size", bytesShown(size)], ["depth", String(depth)], ["p90_ms", timeShown(p90_ms)]]) {
    range(id, STEPS[id].indexOf(nearest(STEPS[id], settings[id])), text);
  }
  for (const one of document.querySelectorAll("[name=equal]")) one.checked = one.value === equal;
  for (const one of document.querySelectorAll("[name=goal]")) one.checked = one.value === goal;
  for (const one of document.querySelectorAll("[name=level]")) one.checked = settings.levels.includes(one.value);
  byId("depth").disabled = goal !== "depth";
  byId("p90_ms").disabled = goal !== "p90";
  const about = data.devices[device];
  const space = terabytes(about.capacity_bytes);
  const title = about.title.replace(` ${space.replace("\u00a0", " ")}`, ` ${space}`);
  byId("about-device").textContent = `${title.includes(space) ? title : `${title}, ${space}`}. ${about.description}`;
  document.querySelector("h1").textContent = questionOf(settings).replace(/(\d) ?(?=%|[KM]iB)/g, "$1\u00a0");
  byId("target-title").textContent = `${data.words.simulated}: ${about.title}`;
  byId("column").textContent = equal === "members" ? "MB/s" : "MB/s per disk";
}

function changed(change) {
  settings = { ...settings, ...change };
  settings.gone = Math.min(settings.gone, mostGone(settings));
  begin();
  history.replaceState(null, "", linkOf(settings));
}

function begin() {
  byId("mistake").textContent = "";
  arrays = arraysOf(settings);
  paint();
  for (const [id, textOf] of [["study", studyText], ["need", needText]]) {
    byId(id).value = soundArrays().length ? textOf(settings, soundArrays()) : "# None of these levels can be.\n";
  }
  byId("levels-out").textContent = arrays.filter(({ mistake }) => mistake).map(({ name, mistake }) => `${LEVELS[name].title}: ${mistake}.`).join(" ");
  redraw();
  refine();
}

function listen() {
  byId("device").addEventListener("change", ({ target }) => changed({ device: target.value }));
  byId("pattern").addEventListener("change", ({ target }) => changed({ pattern: target.value }));
  for (const id of ["disks", "gone", "read"]) byId(id).addEventListener("input", ({ target }) => changed({ [id]: Number(target.value) }));
  for (const id of Object.keys(STEPS)) byId(id).addEventListener("input", ({ target }) => changed({ [id]: STEPS[id][target.value] }));
  for (const one of document.querySelectorAll("[name=equal], [name=goal]")) {
    one.addEventListener("change", ({ target }) => changed({ [target.name]: target.value }));
  }
  for (const one of document.querySelectorAll("[name=level]")) {
    one.addEventListener("change", () => {
      const chosen = [...document.querySelectorAll("[name=level]:checked")].map(({ value }) => value);
      changed({ levels: Object.keys(LEVELS).filter((name) => chosen.includes(name)) });
    });
  }
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  addEventListener("hashchange", () => follow());
  addEventListener("resize", redraw);
}

// A page from a file may be refused the clipboard; what is selected can always be copied.
async function copy(button) {
  const text = button.dataset.copy === "link" ? location.href : byId(button.dataset.copy).value;
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    const field = byId(button.dataset.copy === "link" ? "link" : button.dataset.copy);
    if (button.dataset.copy === "link") field.value = text;
    field.hidden = false;
    field.select();
    done = document.execCommand("copy");
  }
  byId("copied").textContent = done ? "Copied." : "It is selected: copy it with the keyboard.";
}

function follow() {
  const { settings: found, strange } = settingsOf(location.hash);
  settings = found;
  begin();
  if (strange.length) byId("mistake").textContent = `The link has ${strange.join(", ")}, which is not known here; the rest of it holds.`;
}

function choices() {
  const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
  byId("device").append(...Object.entries(data.devices).map(([name, { title }]) => option(name, `${name}: ${title}`)));
  byId("pattern").append(...Object.entries(data.patterns).map(([name, { title }]) => option(name, title)));
  byId("levels").append(...Object.entries(LEVELS).map(([name, { title }]) => {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "level", value: name });
    label.append(box, " ", swatch(name), ` ${title}`);
    return label;
  }));
  byId("disks").max = MOST_DISKS;
  for (const [id, steps] of Object.entries(STEPS)) byId(id).max = steps.length - 1;
}

(async () => {
  try {
    choices();
    pool = await Pool.open();
    listen();
    follow();
    byId("controls").disabled = false;
    // For tests, and for whoever has questions of their own: any cell, and the text of its whole answer.
    globalThis.raidlab = {
      run: (text) => pool.run("run_cell", text, true),
      cells: () => soundArrays().flatMap((array) => depthsOf(settings).flatMap((depth) =>
        Array.from({ length: data.full.repeats }, (_, repeat) => cellText(settings, array, depth, repeat, data.full)))),
    };
  } catch (error) {
    byId("mistake").textContent = `This browser cannot run the simulator (${error.message}); it needs WebAssembly, workers and DecompressionStream.`;
  }
})();
