// SPDX-License-Identifier: Apache-2.0
// One stream to the server: frames of audio out, replies in, each with the latency of its frame.

const CONTENT_TYPE = "audio/x-raw;format=S16LE;channels=1;rate=16000";
const NORMAL = 1000;
const MOST_WAITING = 500; // frames, half a minute, before the server has let the stream in

export function streamUrl({ model, version, key }) {
  const url = new URL("asr/v0.1/stream", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const query = [`content_type=${CONTENT_TYPE}`];
  for (const [name, value] of Object.entries({ model, version, api_key: key })) {
    if (value) query.push(`${name}=${encodeURIComponent(value)}`);
  }
  url.search = query.join("&");
  return url;
}

// Which frame a reply belongs to. A frame has one reply, or a final one and a provisional one behind it; that a final
// one was the whole answer shows when the next reply is final too.
export class Pairing {
  #sent = [];
  #told = false; // the first frame's latency is known, and it may have another reply

  frame(now) {
    this.#sent.push(now);
  }

  // Milliseconds, or null for a reply that tells nothing new about the time.
  reply(provisional, now) {
    const second = this.#told && provisional;
    if (this.#told) {
      this.#sent.shift();
      this.#told = false;
    }
    if (second || !this.#sent.length) return null;
    const latency = now - this.#sent[0];
    if (provisional) this.#sent.shift();
    else this.#told = true;
    return latency;
  }
}

export class Speech {
  #socket;
  #pairing = new Pairing();
  #waiting = [];
  #ended = false;
  #over = false;

  // handlers: reply({text, final}, latency in ms or null), over({opened, code, reason}): once, at the end.
  constructor(options, handlers) {
    let opened = false;
    this.#socket = new WebSocket(streamUrl(options));
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => {
      opened = true;
      for (const frame of this.#waiting.splice(0)) this.#give(frame);
      if (this.#ended) this.#socket.send(new ArrayBuffer(0));
    };
    this.#socket.onmessage = (event) => {
      const now = performance.now();
      const message = JSON.parse(event.data);
      const latency = this.#pairing.reply(message.is_provisional, now);
      handlers.reply({ text: message.alternatives[0].transcript, final: !message.is_provisional }, latency);
    };
    this.#socket.onclose = (event) => {
      this.#over = true;
      const complete = opened && event.code === NORMAL;
      handlers.over({ complete, opened, code: event.code, reason: event.reason });
    };
  }

  send(frame) {
    if (this.#ended || this.#over) return;
    if (this.#socket.readyState === WebSocket.OPEN) this.#give(frame);
    else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(frame);
  }

  #give(frame) {
    this.#socket.send(frame);
    this.#pairing.frame(performance.now());
  }

  end() {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(new ArrayBuffer(0));
  }

  abandon() {
    this.#socket.close();
  }
}
