// SPDX-License-Identifier: Apache-2.0
// The latency of each reply as a bar, the newest at the right, and what they come to.

const KEPT = 2000; // for the figures: two minutes
const BAR = 4; // pixels from one to the next
const FRAME_MS = 60;
const SCALES = [60, 120, 240, 480, 960, 1920, 3840];
const LABEL_MS = 2000;
const CALM_MS = 1000;

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Strip {
  #canvas;
  #figures;
  #kept = [];
  #count = 0;
  #due = false;
  #labelled = -Infinity;

  // figures: elements {last, median, tail, replies}.
  constructor(canvas, figures) {
    this.#canvas = canvas;
    this.#figures = figures;
    new ResizeObserver(() => this.#draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  clear() {
    this.#kept = [];
    this.#count = 0;
    this.#labelled = -Infinity;
    this.#show();
  }

  add(milliseconds) {
    this.#kept.push(milliseconds);
    this.#count += 1;
    if (this.#kept.length > KEPT) this.#kept.shift();
    if (this.#due) return;
    this.#due = true;
    const show = () => {
      this.#due = false;
      this.#show();
    };
    if (calm.matches) setTimeout(show, CALM_MS);
    else requestAnimationFrame(show);
  }

  #show() {
    const sorted = Float64Array.from(this.#kept).sort();
    const says = (part) => (sorted.length ? `${Math.round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))])} ms` : "–");
    const last = this.#kept.length ? `${Math.round(this.#kept.at(-1))} ms` : "–";
    this.#figures.last.textContent = last;
    this.#figures.median.textContent = says(0.5);
    this.#figures.tail.textContent = says(0.99);
    this.#figures.replies.textContent = String(this.#count);
    const now = performance.now();
    if (now - this.#labelled > LABEL_MS) {
      this.#labelled = now;
      const label = `Latency of ${this.#count} replies: median ${says(0.5)}, 99 % within ${says(0.99)}, last ${last}`;
      this.#canvas.setAttribute("aria-label", sorted.length ? label : "No reply yet");
    }
    this.#draw();
  }

  #draw() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    const pen = this.#canvas.getContext("2d");
    const colours = getComputedStyle(document.documentElement);
    const colour = (name) => colours.getPropertyValue(name);
    pen.scale(ratio, ratio);
    const room = 52; // at the right, for the scale
    const shown = this.#kept.slice(-Math.floor((width - room) / BAR));
    const most = Math.max(...shown, 0);
    const top = SCALES.find((scale) => scale >= most) ?? SCALES.at(-1);
    const base = height - 1;
    const rise = (value) => (Math.min(value, top) / top) * (height - 12);

    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (const mark of [top / 4, top / 2, top]) {
      const level = base - rise(mark);
      pen.strokeStyle = colour("--line");
      pen.lineWidth = 1;
      pen.setLineDash(mark === FRAME_MS ? [4, 3] : []);
      pen.beginPath();
      pen.moveTo(0, Math.round(level) + 0.5);
      pen.lineTo(width - room + 4, Math.round(level) + 0.5);
      pen.stroke();
      pen.fillStyle = colour("--soft");
      pen.fillText(`${mark} ms`, width - room + 8, Math.max(6, level));
    }
    pen.setLineDash([]);
    shown.forEach((value, index) => {
      const left = width - room - (shown.length - index) * BAR;
      const tall = Math.max(1.5, rise(value));
      pen.fillStyle = colour(value <= FRAME_MS ? "--good" : value <= 4 * FRAME_MS ? "--late" : "--bad");
      pen.fillRect(left, base - tall, BAR - 1, tall);
    });
    pen.fillStyle = colour("--edge");
    pen.fillRect(0, base, width - room + 4, 1);
  }
}
