// The simulator in workers. Each has one cell at a time: what is asked last need not wait for what was asked before.

let doorsHere;

async function embedded(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).arrayBuffer();
}

// Asks the instance of the page itself what takes no time: trees, and the next step of a search.
const ask = (door, question) => JSON.parse(asked(doorsHere, door, JSON.stringify(question)));

class Pool {
  static async open() {
    const module = await WebAssembly.compile(await embedded("wasm"));
    doorsHere = (await WebAssembly.instantiate(module, {})).exports;
    const source = new Blob([`${asked}\n`, document.getElementById("worker").textContent], { type: "text/javascript" });
    const address = URL.createObjectURL(source);
    const count = Math.max(1, Math.min(8, navigator.hardwareConcurrency || 2));
    const pool = new Pool();
    pool.idle = Array.from({ length: count }, () => {
      const worker = new Worker(address);
      worker.postMessage({ module });
      worker.onmessage = ({ data: reply }) => pool.done(worker, reply);
      return worker;
    });
    return pool;
  }

  constructor() {
    this.waiting = [];
    this.answers = new Map();
    this.number = 0;
  }

  run(door, text, whole = false) {
    return new Promise((answer) => {
      this.waiting.push({ door, text, whole, answer });
      this.next();
    });
  }

  // How many cells are asked for and not answered.
  left() {
    return this.waiting.length + this.answers.size;
  }

  // What has not begun is not wanted any more.
  forget() {
    for (const { answer } of this.waiting) answer(null);
    this.waiting = [];
  }

  next() {
    while (this.waiting.length && this.idle.length) {
      const { door, text, whole, answer } = this.waiting.shift();
      this.number += 1;
      this.answers.set(this.number, answer);
      this.idle.pop().postMessage({ id: this.number, door, text, whole });
    }
  }

  done(worker, { id, told }) {
    const answer = this.answers.get(id);
    this.answers.delete(id);
    this.idle.push(worker);
    this.next();
    answer(told);
  }
}
