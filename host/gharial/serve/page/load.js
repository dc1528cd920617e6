// SPDX-License-Identifier: Apache-2.0
// What the server tells about itself: its devices, how busy each is, and its models.

const EVERY_MS = 1000;
const SLOW_MS = 5000; // where the last answer was none

// The server's state: { state: "up", load }, { state: "key" } where it wants one, { state: "gone" }, or { state: "none" }
// where it runs but tells nothing.
export async function ask(key) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  try {
    const answer = await fetch(new URL("load", document.baseURI), { headers, cache: "no-store" });
    if (answer.status === 401 || answer.status === 403) return { state: "key" };
    if (!answer.ok) return { state: "none" };
    return { state: "up", load: await answer.json() };
  } catch {
    return { state: "gone" };
  }
}

export class Load {
  #list;
  #summary;
  #timer = 0;
  #key;
  #seen;

  // key: gives the key; seen(answer): called with each answer of `ask`.
  constructor(list, summary, key, seen) {
    this.#list = list;
    this.#summary = summary;
    this.#key = key;
    this.#seen = seen;
    document.addEventListener("visibilitychange", () => this.now());
  }

  async now() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const answer = await ask(this.#key());
    this.#show(answer);
    this.#seen(answer);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.now(), answer.state === "up" ? EVERY_MS : SLOW_MS);
  }

  #show({ state, load }) {
    if (state !== "up") {
      this.#list.replaceChildren();
      this.#summary.textContent = {
        key: "shown once the server has been given a key",
        gone: "the server does not answer",
        none: "the server does not tell",
      }[state];
      return;
    }
    const devices = load.devices ?? [];
    const streams = devices.reduce((sum, device) => sum + device.streams, 0);
    const most = devices.reduce((sum, device) => sum + device.capacity, 0);
    const latency = load.cl99_ms == null ? "" : `, 99 % of its frames answered within ${Math.max(1, Math.round(load.cl99_ms))} ms`;
    const rest = load.draining ? ", about to stop" : "";
    this.#summary.textContent = `${streams} of ${most} streams${latency}${rest}`;
    while (this.#list.children.length > devices.length) this.#list.lastElementChild.remove();
    devices.forEach((device, index) => showDevice(this.#row(index), device));
  }

  #row(index) {
    if (!this.#list.children[index]) {
      const row = document.createElement("li");
      const name = document.createElement("span");
      const meter = document.createElement("meter");
      const says = document.createElement("span");
      says.className = "says";
      meter.max = 1;
      meter.high = 0.9;
      meter.low = 0.75;
      meter.optimum = 0;
      row.append(name, meter, says);
      this.#list.append(row);
    }
    return this.#list.children[index];
  }
}

function showDevice(row, device) {
  const [name, meter, says] = row.children;
  const model = !device.model || device.device.includes(device.model) ? "" : ` (${device.model})`;
  name.textContent = `${device.device}${model}`;
  meter.value = device.load;
  meter.setAttribute("aria-label", `Load of ${device.device}`);
  says.classList.toggle("failed", !device.up);
  says.textContent = device.up ? `${Math.round(100 * device.load)} % busy, ${device.streams} streams` : "out of order";
}

// Names and versions of the models, in the server's order, each once.
export function models(load) {
  const found = new Map();
  for (const { model, version } of load.devices ?? []) {
    if (!found.has(model)) found.set(model, new Set());
    found.get(model).add(version);
  }
  return [...found].flatMap(([model, versions]) => [...versions].map((version) => ({ model, version })));
}
