// SPDX-License-Identifier: Apache-2.0
// Sources of audio: each gives frames of 60 ms of s16le at 16 kHz, in real time, until it is stopped or at its end.

export const RATE = 16000;
export const FRAME = 960;
const FRAME_MS = 60;
const TICK_MS = 15;

export class AudioError extends Error {}

// Loudness of a frame, 0 to 1, on a scale as ears have it: 60 dB from end to end.
export function loudness(frame) {
  const samples = new Int16Array(frame, 0, frame.byteLength >> 1);
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  const rms = Math.sqrt(sum / Math.max(1, samples.length)) / 32768;
  return rms ? Math.max(0, Math.min(1, 1 + Math.log10(rms) / 3)) : 0;
}

export async function microphone(onframe) {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new AudioError("The browser gives the microphone only to pages from https:// or from localhost. A recording works here.");
  }
  let input;
  try {
    // What is meant for calls takes away parts of words; only the level is evened out.
    const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: true };
    input = await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw new AudioError(microphoneTrouble(error));
  }
  const { context, source } = openContext(input);
  const stop = () => {
    for (const track of input.getTracks()) track.stop();
    if (context.state !== "closed") context.close();
  };
  try {
    await context.audioWorklet.addModule(new URL("capture.js", import.meta.url));
    await context.resume();
  } catch (error) {
    stop();
    throw new AudioError(`The browser cannot process sound: ${error.message}`);
  }
  const capture = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
  capture.port.onmessage = (event) => onframe(event.data);
  source.connect(capture);
  return { stop, lost: new Promise((lost) => input.getTracks()[0].addEventListener("ended", lost)) };
}

// At 16 kHz where the browser resamples a microphone for that, else at the microphone's own rate.
function openContext(input) {
  const context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
  try {
    return { context, source: context.createMediaStreamSource(input) };
  } catch {
    context.close();
    const own = new AudioContext({ latencyHint: "interactive" });
    return { context: own, source: own.createMediaStreamSource(input) };
  }
}

function microphoneTrouble(error) {
  if (error.name === "NotAllowedError") return "The microphone was not allowed. Allow it in the browser’s settings for this page.";
  if (error.name === "NotFoundError") return "There is no microphone. Plug one in, or choose a recording.";
  if (error.name === "NotReadableError") return "The microphone is in use by another program.";
  return `The microphone cannot be used: ${error.message}`;
}

export async function recording(file, onframe, ondone) {
  const samples = await decode(file);
  const begun = performance.now();
  let at = 0;
  let timer = 0;
  const tick = () => {
    const due = ((performance.now() - begun) / FRAME_MS) * FRAME;
    while (at < samples.length && Math.min(at + FRAME, samples.length) <= due) {
      const frame = samples.slice(at, at + FRAME);
      at += frame.length;
      onframe(frame.buffer);
    }
    if (at < samples.length) timer = setTimeout(tick, TICK_MS);
    else ondone();
  };
  timer = setTimeout(tick, TICK_MS);
  return { stop: () => clearTimeout(timer), lost: new Promise(() => {}) };
}

async function decode(file) {
  let sound;
  try {
    // A context's rate is what it decodes to.
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new AudioError(`${file.name}: this browser cannot decode it. WAV, FLAC, MP3 and OGG are usual.`);
  }
  const samples = new Int16Array(sound.length);
  const channels = Array.from({ length: sound.numberOfChannels }, (_, index) => sound.getChannelData(index));
  for (let index = 0; index < sound.length; index += 1) {
    let sum = 0;
    for (const channel of channels) sum += channel[index];
    samples[index] = Math.max(-32768, Math.min(32767, Math.round((sum / channels.length) * 32768)));
  }
  return samples;
}
