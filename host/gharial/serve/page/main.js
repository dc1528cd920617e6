// SPDX-License-Identifier: Apache-2.0
// The page: one stream at a time, from a source of audio to text on the screen.

import { AudioError, loudness, microphone, recording } from "./audio.js";
import { Load, ask, models } from "./load.js";
import { Speech } from "./speech.js";
import { Strip } from "./strip.js";

const KEY = "gharial-key";
const PATIENCE_MS = 10000; // for the last replies, once the audio has ended

const at = (id) => document.getElementById(id);
const strip = new Strip(at("strip"), { last: at("last"), median: at("median"), tail: at("tail"), replies: at("replies") });

let run = null; // the stream that is on, with its source
let starter = null; // the button that began it
let key = remembered();

function remembered() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // storage is off
  }
}

function show(state, text) {
  document.body.dataset.state = state;
  at("status").textContent = text;
  const busy = state === "starting" || state === "live" || state === "ending";
  for (const id of ["microphone", "choose", "model"]) at(id).disabled = busy;
  at("stop").disabled = !(state === "starting" || state === "live");
}

function fail(text) {
  at("error").textContent = text;
  at("error").hidden = false;
  show("error", "Stopped");
}

// --- Text ---------------------------------------------------------------------------------------------------------

let paragraph = null;

function beginText() {
  if (paragraph?.textContent === "") paragraph.remove();
  paragraph = document.createElement("p");
  at("final").append(paragraph);
  at("hint").hidden = true;
  at("partial").textContent = "";
}

function take({ text, final }) {
  if (final && text) {
    // A span a message: a screen reader says what was added.
    const span = document.createElement("span");
    span.textContent = paragraph.textContent === "" ? text.trimStart() : text;
    paragraph.append(span);
  }
  at("partial").textContent = final ? "" : paragraph.textContent === "" ? text.trimStart() : text;
  const caption = document.querySelector(".caption");
  caption.scrollTop = caption.scrollHeight;
  offerText();
}

function offerText() {
  const empty = at("final").textContent === "";
  at("copy").disabled = at("clear").disabled = empty;
}

function wholeText() {
  return [...at("final").children].map((part) => part.textContent.trim()).filter(Boolean).join("\n\n");
}

at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(wholeText());
    at("status").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(at("final"));
    at("status").textContent = "Selected: copy it with Ctrl+C";
  }
});

at("clear").addEventListener("click", () => {
  at("final").replaceChildren();
  at("partial").textContent = "";
  if (run) beginText();
  else {
    paragraph = null;
    strip.clear();
    at("hint").hidden = false;
  }
  offerText();
  at("transcript").focus();
});

// --- A stream -----------------------------------------------------------------------------------------------------

async function start(button, open) {
  if (run) return;
  starter = button;
  at("error").hidden = true;
  const mine = { source: null, speech: null, stopped: false, timer: 0 };
  run = mine;
  show("starting", "Starting");
  at("stop").focus();
  const onframe = (frame) => {
    if (run !== mine || mine.stopped) return;
    at("level").style.transform = `scaleX(${loudness(frame)})`;
    mine.speech?.send(frame);
  };
  try {
    const [model, version] = (at("model").value || "").split("\n");
    mine.source = await open(onframe, () => run === mine && stop());
    if (mine.stopped) {
      mine.source.stop();
      finish(mine, "Ready");
      return;
    }
    mine.source.lost.then(() => run === mine && stop());
    beginText();
    strip.clear();
    mine.speech = new Speech({ model, version, key }, {
      reply: (reply, latency) => {
        if (run !== mine) return;
        take(reply);
        if (latency !== null) strip.add(latency);
      },
      over: (how) => run === mine && over(mine, how),
    });
    show("live", "Listening");
    load.now();
  } catch (error) {
    mine.source?.stop();
    finish(mine, "Ready");
    fail(error instanceof AudioError ? error.message : `Something went wrong: ${error.message}`);
  }
}

function stop() {
  const mine = run;
  if (!mine || mine.stopped) return;
  mine.stopped = true;
  mine.source?.stop();
  if (!mine.speech) return;
  show("ending", "Finishing");
  mine.speech.end();
  mine.timer = setTimeout(() => mine.speech.abandon(), PATIENCE_MS);
}

async function over(mine, { complete, opened, code, reason }) {
  const ending = mine.stopped;
  mine.stopped = true;
  mine.source.stop();
  finish(mine, ending ? "Done" : "Ended by the server");
  if (!complete) fail(await explain(opened, code, reason));
  load.now();
}

function finish(mine, text) {
  clearTimeout(mine.timer);
  if (run === mine) run = null;
  at("level").style.transform = "scaleX(0)";
  at("partial").textContent = "";
  const back = document.activeElement === at("stop") || document.activeElement === document.body;
  show("idle", text);
  if (back) starter?.focus();
}

// Why a stream came to a bad end, in words for whoever sits before the page.
async function explain(opened, code, reason) {
  const said = reason.replace(/^\d{3}\s*/, "");
  const status = Number(/^\d{3}/.exec(reason)?.[0]);
  if (status === 503 || code === 1013) return `The server is full: ${said || "no place is left"}. Try again later.`;
  if (status === 401 || status === 403) return wantKey();
  if (reason) return `The server ended the stream: ${said}`;
  const { state } = await ask(key);
  if (state === "gone") return "The server is gone. What was final above is kept; the rest is lost.";
  if (state === "key") return wantKey();
  return opened ? "The connection was lost before the last words came." : "The server did not take the stream.";
}

function wantKey() {
  at("keys").hidden = false;
  at("key").focus();
  return key ? "The server does not know this key." : "This server asks for a key: enter it above.";
}

// --- What can be operated -----------------------------------------------------------------------------------------

at("microphone").addEventListener("click", (event) => start(event.currentTarget, (onframe) => microphone(onframe)));

at("choose").addEventListener("click", () => at("file").click());

at("file").addEventListener("change", () => {
  const [file] = at("file").files;
  at("file").value = ""; // so that the same one can be chosen again
  if (file) start(at("choose"), (onframe, ondone) => recording(file, onframe, ondone));
});

at("stop").addEventListener("click", stop);

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") stop();
});

at("keys").addEventListener("submit", (event) => {
  event.preventDefault();
  key = at("key").value;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // It is kept until the page is left.
  }
  at("error").hidden = true;
  load.now();
  at("microphone").focus();
});

function offerModels(found) {
  const choices = models(found);
  const several = choices.length > 1;
  at("models").hidden = !several;
  const select = at("model");
  const values = choices.map(({ model, version }) => `${model}\n${version}`);
  if (!several || values.join() === [...select.options].map((option) => option.value).join()) return;
  const chosen = select.value;
  const names = choices.map(({ model }) => model);
  const once = (name) => names.indexOf(name) === names.lastIndexOf(name);
  select.replaceChildren(
    ...choices.map(({ model, version }, index) => new Option(once(model) ? model : `${model} ${version}`, values[index])),
  );
  if (values.includes(chosen)) select.value = chosen;
}

const load = new Load(at("devices"), at("streams"), () => key, ({ state, load: found }) => {
  if (state === "up") offerModels(found);
  if (state === "key") at("keys").hidden = false;
});

show("idle", "Ready");
load.now();
