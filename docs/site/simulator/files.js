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
function studyText(settings, arrays) {
  const sound = arrays.filter((array) => !array.mistake);
  const depths = depthsOf(settings).join(", ");
  const hold = settings.goal === "p90"
    ? `hold = { percentile = 90, target = ${quoted(timeText(settings.p90_ms))}, max_depth = ${data.max_depth} }\n` : "";
  const title = settings.equal === "members" ? `${settings.disks} members each` : `The space of ${settings.disks} disks`;
  const amount = ({ warmup, measure }) => `warmup = { requests = ${warmup} }, measure = { requests = ${measure} }`;
  const missing = settings.gone ? `missing = [${missingOf(settings).join(", ")}]\n` : "";
  return `# From raidlab's page in a browser: \`raidlab run FILE --seed ${data.seed}\` gives the figures that it shows.
name = "simulated"
title = ${quoted(questionOf(settings))}
on = ["sim"]

${sound.map(({ name, text }) => `[[array]]\nname = ${quoted(name)}\ntree = ${quoted(text)}\n${missing}`).join("\n")}
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
reference = ${quoted(sound[0]?.name ?? "")}
equal = ${quoted(settings.equal)}
`;
}

// What is needed, without a level that it must be: it is asked over all that could be built of so many disks.
function needText(settings, arrays) {
  const sound = arrays.filter((array) => !array.mistake);
  const most = Math.max(...sound.map(({ disks }) => disks), 1);
  const space = Math.min(...sound.map(({ user_bytes }) => user_bytes));
  const goals = [];
  if (settings.equal === "user_capacity" && sound.length) goals.push(`capacity = ${quoted(`${space}B`)}`);
  if (settings.goal === "p90") goals.push(`p90 = ${quoted(timeText(settings.p90_ms))}`);
  const members = [...new Set(sound.map(({ disks }) => disks))].sort((a, b) => a - b);
  return `# From raidlab's page in a browser: \`raidlab recommend FILE\`. Prices, failures to bear and more may be added.
name = "simulated"
title = ${quoted(questionOf(settings))}
ask = "fastest"
devices = [{ device = ${quoted(settings.device)}, at_most = ${most} }]

${workloadText(settings)}load = { depths = [${settings.depth}] }

[need]
tolerate = ${Math.max(settings.gone, Math.min(1, ...sound.map(({ tolerance }) => tolerance)))}
${goals.map((goal) => `${goal}\n`).join("")}
[search]
levels = [${sound.map(({ name }) => quoted(name)).join(", ")}]
members = [${members.join(", ")}]
chunks = [${quoted(bytesText(settings.chunk))}]
`;
}
