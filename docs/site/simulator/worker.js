// A worker: the simulator, one question at a time.
"use strict";
let module, doors;

// Of the answer of a cell what the page shows; `whole` asks for all of it.
function told(door, text, whole) {
  if (door !== "run_cell" || whole) return text;
  const { answer, error } = JSON.parse(text);
  if (error) return { error };
  const { all, read, write, elapsed_ns } = answer;
  return { answer: { requests: all.requests, bytes: all.bytes, elapsed_ns, times: [read.response, write.response] } };
}

onmessage = ({ data }) => {
  if (data.module) module = data.module;
  if (!doors) doors = new WebAssembly.Instance(module, {}).exports;
  if (!data.door) return;
  try {
    postMessage({ id: data.id, told: told(data.door, asked(doors, data.door, data.text), data.whole) });
  } catch (error) {
    // The simulator stops where something is wrong with itself; another one goes on.
    doors = null;
    postMessage({ id: data.id, told: { error: { key: "", message: `the simulator stopped: ${error.message}` } } });
  }
};
