// The same question as a file: a study, and the need of `raidlab recommend`.

const quoted = (text) => `"${text}"`;
const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const counted = (number) => NUMBERS[number] ?? String(number);

function workWords(settings) {
  const parts = { 0: "writes", 100: "reads" }[settings.read];
  const what = parts ? `${bytesText(settings.size)} ${parts}` : `${settings.read} % reads of ${bytesText(settings.size)}`;
  return `${what}, ${data.patterns[settings.pattern].title}`;
}

function questionOf(settings) {
  const disks = settings.disks === 1 ? "one disk" : `${counted(settings.disks)} disks`;
  const what = settings.equal === "members" ? `on ${disks}` : `for the space of ${disks}`;
  const gone = settings.gone ? `, with ${counted(settings.gone)} gone` : "";
  return `Which level for ${workWords(settings)}, ${what}${gone}?`;
}

const workloadText = (settings) =>
  `[[workload]]
name = ${quoted(data.workload)}
read = ${(settings.read / 100).toFixed(2)}
size = ${quoted(bytesText(settings.size))}
address = ${data.patterns[settings.pattern].text}
`;

// A whole study, whose cells are those of this page.
function studyText(settings, sound) {
  const depths = depthsOf(settings).join(", ");
  const hold = settings.goal === "p90"
    ? `hold = { percentile = 90, target = ${quoted(timeText(settings.p90_ms))}, max_depth = ${data.max_depth} }\n` : "";
  const title = settings.equal === "members" ? `${settings.disks} members each` : `The space of ${settings.disks} disks`;
  const amount = ({ warmup, measure }) => `warmup = { requests = ${warmup} }, measure = { requests = ${measure} }`;
  const arrayText = ({ name, text, missing }) =>
    `[[array]]\nname = ${quoted(name)}\ntree = ${quoted(text)}\n${missing.length ? `missing = [${missing.join(", ")}]\n` : ""}`;
  return `# From raidlab's page in a browser: \`raidlab run FILE --seed ${data.seed}\` gives the figures that it shows.
name = "simulated"
title = ${quoted(questionOf(settings))}
on = ["sim"]

${sound.map(arrayText).join("\n")}
${workloadText(settings)}
[load]
depths = [${depths}]
${hold}
[sim]
device = ${quoted(settings.device)}
warmup = { requests = ${data.full.warmup} }
measure = { requests = ${data.full.measure} }
repeats = ${data.full.repeats}
quick = { ${amount(data.quick)}, repeats = ${data.quick.repeats}, fill_caches = ${data.quick.fill_caches} }

[[compare]]
group = "all"
title = ${quoted(title)}
reference = ${quoted(sound[0].name)}
equal = ${quoted(settings.equal)}
`;
}

// Times that a need asks for, and what of the page's question it cannot ask: it knows one missing disk, and a depth.
function goalsOf({ goal, gone, p90_ms }) {
  if (goal === "depth") {
    return gone ? [`# Left out: ${counted(gone)} gone. A need asks for times with a disk missing: degraded = { p90 = "100ms" }`] : [];
  }
  const within = `p90 = ${quoted(timeText(p90_ms))}`;
  return [
    "# The page looks for the depth at which this is held; a need is asked at one: 16, unless `depth` says another.",
    within,
    ...(gone > 1 ? [`# Left out: ${counted(gone)} gone. This is with one disk missing.`] : []),
    ...(gone ? [`degraded = { ${within} }`] : []),
  ];
}

// What is needed, without a level that it must be: it is asked over all that could be built of so many disks.
function needText(settings, sound) {
  const most = Math.max(...sound.map(({ disks }) => disks));
  const space = Math.min(...sound.map(({ user_bytes }) => user_bytes));
  const goals = goalsOf(settings);
  if (settings.equal === "user_capacity") goals.push(`capacity = ${quoted(`${space}B`)}`);
  const members = [...new Set(sound.map(({ disks }) => disks))].sort((a, b) => a - b);
  return `# From raidlab's page in a browser: \`raidlab recommend FILE\`. Prices, failures to bear and more may be added.
name = "simulated"
title = ${quoted(questionOf(settings))}
ask = "fastest"
devices = [{ device = ${quoted(settings.device)}, at_most = ${most} }]

${workloadText(settings)}${settings.goal === "depth" ? `load = { depths = [${settings.depth}] }\n` : ""}
[need]
tolerate = ${Math.min(Math.max(settings.gone, 1), ...sound.map(({ borne }) => borne))}
${goals.map((goal) => `${goal}\n`).join("")}
[search]
levels = [${sound.map(({ name }) => quoted(name)).join(", ")}]
members = [${members.join(", ")}]
chunks = [${quoted(bytesText(settings.chunk))}]
`;
}
