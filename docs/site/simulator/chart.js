// The picture: throughput against the 90th percentile of response time, a line a level, a mark a depth.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = {
  circle: "M-4.6,0a4.6,4.6 0 1,0 9.2,0a4.6,4.6 0 1,0 -9.2,0Z",
  square: "M-4,-4h8v8h-8Z",
  "triangle-up": "M0,-5.2L5,3.8H-5Z",
  diamond: "M0,-5.8L4.6,0L0,5.8L-4.6,0Z",
  cross: "M-1.7,-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3Z",
  "triangle-down": "M0,5.2L5,-3.8H-5Z",
  "triangle-right": "M5.2,0L-3.8,5V-5Z",
};

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function looksOf(name) {
  const place = Object.keys(LEVELS).indexOf(name);
  return { colour: data.colours[place], shape: SHAPES[data.shapes[place]] };
}

function swatch(name) {
  const { colour, shape } = looksOf(name);
  const svg = element("svg", { class: "chart swatch", width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" });
  svg.append(element("path", { d: shape, fill: colour }));
  return svg;
}

// 1, 2, 5, 10, ... within two ends; few enough to read.
function logTicks(low, high) {
  const steps = high / low < 200 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of steps) {
      const tick = step * 10 ** power;
      if (tick >= low && tick <= high) found.push(Number(tick.toPrecision(1)));
    }
  }
  return found;
}

function linearTicks(high) {
  const rough = high / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

// `lines`: name, and points of depth, rate, p90_ms, their intervals, and whether they are of the first look.
// `held`: points at the target; `target_ms` null at a depth; `chosen`: the depth that is judged, or null.
function draw(svg, { lines, held, target_ms, chosen, unit }) {
  const width = Math.max(300, Math.min(860, svg.parentElement.clientWidth));
  const height = Math.round(Math.max(260, Math.min(420, width * 0.56)));
  const frame = { left: 58, right: width - 14, top: 24, bottom: height - 46 };
  const points = lines.flatMap((line) => line.points);
  const children = [];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  if (!points.length) {
    svg.replaceChildren();
    svg.setAttribute("aria-label", "No figures");
    return;
  }
  const times = [...points, ...held].map(({ p90_ms }) => p90_ms).concat(target_ms ?? []);
  const [low, high] = [Math.min(...times) / 1.25, Math.max(...times) * 1.25];
  const most = Math.max(...[...points, ...held].map(({ rate, ends }) => Math.max(rate, ends ? ends[1] : 0))) * 1.06;
  const x = (ms) => frame.left + (Math.log(ms / low) / Math.log(high / low)) * (frame.right - frame.left);
  const y = (rate) => frame.bottom - (rate / most) * (frame.bottom - frame.top);
  const grid = { stroke: "currentColor", "stroke-opacity": 0.14 };
  const label = { fill: "currentColor", "font-size": 12 };
  let lastEnd = -Infinity;
  for (const tick of logTicks(low, high)) {
    children.push(element("line", { x1: x(tick), x2: x(tick), y1: frame.top, y2: frame.bottom, ...grid }));
    const text = String(tick);
    const half = text.length * 4;
    if (x(tick) - half > lastEnd + 8) {
      children.push(element("text", { x: x(tick), y: frame.bottom + 17, "text-anchor": "middle", ...label }, text));
      lastEnd = x(tick) + half;
    }
  }
  for (const tick of linearTicks(most)) {
    children.push(element("line", { x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick), ...grid }));
    children.push(element("text", { x: frame.left - 8, y: y(tick) + 4, "text-anchor": "end", ...label }, tick.toLocaleString("en")));
  }
  children.push(element("text", { x: (frame.left + frame.right) / 2, y: height - 8, "text-anchor": "middle", ...label },
    width < 480 ? "p90 of response time (ms, log scale)" : "90th percentile of response time (ms, log scale)"));
  children.push(element("text", { x: 4, y: 12, ...label }, unit));
  if (target_ms !== null) {
    const at = { x1: x(target_ms), x2: x(target_ms), y1: frame.top, y2: frame.bottom };
    children.push(element("line", { ...at, stroke: "currentColor", "stroke-dasharray": "5 4", "stroke-opacity": 0.7 }));
  }
  for (const { name, points: own } of lines) {
    const { colour, shape } = looksOf(name);
    const way = own.map(({ p90_ms, rate }, i) => `${i ? "L" : "M"}${x(p90_ms).toFixed(1)},${y(rate).toFixed(1)}`).join("");
    children.push(element("path", { d: way, fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round" }));
    for (const point of own) children.push(...marksOf(point, { name, colour, shape, x, y, chosen, unit }));
  }
  for (const { name, p90_ms, rate, ends } of held) {
    const { colour } = looksOf(name);
    const said = `${name} holds ${number(rate)} ${unit}${between(ends)} at a p90 of ${number(p90_ms)} ms`;
    const place = `translate(${x(p90_ms).toFixed(1)},${y(rate).toFixed(1)}) scale(1.5)`;
    children.push(element("path", { d: SHAPES.diamond, transform: place, fill: colour, stroke: "white", role: "img", "aria-label": said }));
  }
  svg.replaceChildren(...children);
  svg.setAttribute("aria-label", inWords(lines, held, unit));
}

const between = (ends) => (ends ? ` (95 % interval ${number(Math.max(ends[0], 0))} to ${number(ends[1])})` : "");

function* marksOf(point, { name, colour, shape, x, y, chosen, unit }) {
  const { depth, p90_ms, rate, ends, p90_ends, first } = point;
  const bar = { stroke: colour, "stroke-width": 1.4 };
  if (ends) yield element("line", { x1: x(p90_ms), x2: x(p90_ms), y1: y(Math.max(ends[0], 0)), y2: y(ends[1]), ...bar });
  if (p90_ends && p90_ends[0] > 0) {
    yield element("line", { x1: x(p90_ends[0]), x2: x(p90_ends[1]), y1: y(rate), y2: y(rate), ...bar });
  }
  const place = `translate(${x(p90_ms).toFixed(1)},${y(rate).toFixed(1)})${depth === chosen ? " scale(1.5)" : ""}`;
  const said = `${name}, queue depth ${depth}: ${number(rate)} ${unit}${between(ends)}, 90 % within ${number(p90_ms)} ms${first ? "; a first look" : ""}`;
  const look = first ? { fill: "white", stroke: colour, "stroke-width": 1.5 } : { fill: colour, stroke: "white", "stroke-width": 1 };
  yield element("path", { d: shape, transform: place, ...look, role: "img", "aria-label": said });
}

// The same for whoever does not see it, in the words of reports.
function inWords(lines, held, unit) {
  const said = lines.filter(({ points }) => points.length).map(({ name, points }) => {
    const [first, last] = [points[0], points.at(-1)];
    const begin = `${name} ${number(first.rate)} at ${number(first.p90_ms)}`;
    return points.length < 2 ? begin : `${begin} to ${number(last.rate)} at ${number(last.p90_ms)}`;
  });
  const kept = held.map(({ name, rate }) => `${name} ${number(rate)}`).join(", ");
  return `${unit} over the 90th percentile of response time in ms: ${said.join("; ")}.${kept ? ` Held at the target: ${kept}.` : ""}`;
}
