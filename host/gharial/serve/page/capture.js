// SPDX-License-Identifier: Apache-2.0
// In the audio thread: the microphone's samples as frames of 60 ms of s16le at 16 kHz, whatever the context's rate is.

const RATE = 16000;
const FRAME = 960;
const ZEROS = 16; // of the low-pass on either side

// Band-limited interpolation: a sinc below both Nyquist frequencies under a Hann window. Nothing is computed where the
// context already runs at 16 kHz.
class Resampler {
  constructor(from) {
    this.step = from / RATE;
    this.cut = Math.min(1, RATE / from) * 0.92;
    this.half = Math.ceil(ZEROS / this.cut);
    this.held = new Float32Array(this.half);
    this.at = this.half; // of the next output, in `held`
  }

  push(block) {
    const all = new Float32Array(this.held.length + block.length);
    all.set(this.held);
    all.set(block, this.held.length);
    const out = [];
    while (this.at + this.half < all.length) {
      const first = Math.ceil(this.at - this.half);
      let sum = 0;
      for (let index = Math.max(0, first); index <= this.at + this.half; index += 1) {
        sum += all[index] * this.weight(index - this.at);
      }
      out.push(sum);
      this.at += this.step;
    }
    const used = Math.max(0, Math.floor(this.at) - this.half);
    this.held = all.slice(used);
    this.at -= used;
    return out;
  }

  weight(distance) {
    const x = Math.PI * distance * this.cut;
    const window = 0.5 + 0.5 * Math.cos((Math.PI * distance) / this.half);
    return this.cut * window * (x === 0 ? 1 : Math.sin(x) / x);
  }
}

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.frame = new Int16Array(FRAME);
    this.filled = 0;
    this.resampler = sampleRate === RATE ? null : new Resampler(sampleRate);
  }

  process([channels]) {
    if (channels.length === 0) return true;
    const block = channels[0];
    for (const sample of this.resampler ? this.resampler.push(block) : block) {
      this.frame[this.filled] = Math.max(-32768, Math.min(32767, Math.round(sample * 32768)));
      this.filled += 1;
      if (this.filled === FRAME) {
        this.port.postMessage(this.frame.buffer, [this.frame.buffer]);
        this.frame = new Int16Array(FRAME);
        this.filled = 0;
      }
    }
    return true;
  }
}

registerProcessor("capture", Capture);
