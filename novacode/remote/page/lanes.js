// The time-line of one run: a lane for each stream and each call. The same reading as `novacode sessions show
// --timeline`. The model has no DOM; `drawLanes` draws it.

import { el, svg } from "./dom.js";
import { duration, oneLine, visible } from "./text.js";

const WORDS = {
  asked: "the model is asked",
  stream: "the model answers",
  waiting: "waiting",
  hook: "a hook",
  asking: "a person is asked",
  queued: "queued",
  running: "running",
  stopping: "stopping",
};
const MOST_LANES = 150; // the last ones: what is under way is among them

export class Lanes {
  constructor(event) {
    this.began = event.at;
    this.now = event.at;
    this.tasks = [];
    this.calls = new Map();
    this.stream = null;
    this.ended = null;
  }

  take(event) {
    const at = (this.now = Math.max(this.now, event.at));
    if (event.type === "turn_began") {
      this.#endStream("");
      this.stream = this.#task(`turn ${event.number}`, "asked", at);
    } else if (event.type === "run_ended") {
      this.#endStream("");
      this.ended = event;
      for (const task of this.tasks) end(task, at, "");
    } else if (this.stream && !this.stream.over) {
      if (event.type === "started") move(this.stream, "stream", at);
      if (event.type === "finished") end(this.stream, at, event.stop);
      if (event.type === "attempt_dropped") move(this.stream, "asked", at);
      if (event.type === "turn_committed") this.#endStream("broke off");
    }
    this.#takeCall(event, at);
  }

  /** When the run was asked to stop, by the stamps' clock; `null` where it was not. */
  get stopAt() {
    const { ended } = this;
    if (!ended || (ended.status !== "cancelled" && !ended.reaped?.ms)) return null;
    return Math.max(this.began, this.now - (ended.reaped?.ms ?? 0) / 1000);
  }

  #takeCall(event, at) {
    if (event.type === "call_ready" || event.type === "call_broken") {
      const task = this.#task(`${event.call.name} ${event.call.id}`, "waiting", at);
      this.calls.set(event.call.id, task);
      if (event.type === "call_broken") end(task, at, "broken");
      return;
    }
    const task = this.calls.get(event.call_id ?? event.call?.id ?? event.result?.call_id);
    if (!task) return;
    if (event.type === "approval_asked") move(task, "asking", at);
    if (event.type === "approval_closed") move(task, "waiting", at);
    if (event.type === "call_moved" && (event.phase === "queued" || event.phase === "running")) move(task, event.phase, at);
    if (event.type === "call_settled") end(task, at, event.result.outcome);
    if (event.type === "hook_ran") {
      const { kind } = task;
      move(task, "hook", Math.max(task.since, at - event.seconds));
      move(task, kind, at);
    }
  }

  #task(title, kind, since) {
    const task = { title, kind, since, spans: [], outcome: "", over: false };
    this.tasks.push(task);
    return task;
  }

  #endStream(outcome) {
    if (this.stream) end(this.stream, this.now, outcome);
  }
}

function move(task, kind, at) {
  if (task.over) return;
  if (at > task.since) task.spans.push({ kind: task.kind, begin: task.since, end: at });
  task.since = at;
  task.kind = kind;
}

function end(task, at, outcome) {
  if (task.over) return;
  if (at > task.since || !task.spans.length) task.spans.push({ kind: task.kind, begin: task.since, end: at });
  task.over = true;
  task.outcome = outcome.replaceAll("_", " ");
}

/** Return the spans of a task up to `now`; what comes after the request to stop is `stopping`. */
function spansOf(task, lanes, now) {
  const open = task.over ? [] : [{ kind: task.kind, begin: task.since, end: Math.max(now, task.since) }];
  const stop = lanes.stopAt ?? Infinity;
  return [...task.spans, ...open].flatMap((span) => {
    const before = span.begin < Math.min(span.end, stop) || span.begin === span.end ? [{ ...span, end: Math.min(span.end, stop) }] : [];
    const after = Math.max(span.begin, stop) < span.end ? [{ kind: "stopping", begin: Math.max(span.begin, stop), end: span.end }] : [];
    return [...before, ...after];
  });
}

const LEFT = 4;
const WIDTH = 312;
const ROW = 38;
const TOP = 24;

/** Return the drawing of `lanes`, with `now` by the clock of its stamps. */
export function drawLanes(lanes, now) {
  const tasks = lanes.tasks.slice(-MOST_LANES);
  const until = lanes.ended ? lanes.now : Math.max(lanes.now, now);
  const whole = Math.max(until - lanes.began, 0.001);
  const x = (at) => LEFT + ((at - lanes.began) / whole) * WIDTH;
  const height = TOP + ROW * tasks.length + 4;
  const used = new Set();
  const picture = svg("svg", { class: "lanes", viewBox: `0 0 ${LEFT * 2 + WIDTH} ${height}`, role: "img", "aria-label": `Time-line: ${tasks.length} tasks in ${duration(whole)}` });
  for (const at of ticks(whole)) {
    const place = x(lanes.began + at).toFixed(1);
    picture.append(
      svg("line", { class: "grid", x1: place, y1: 18, x2: place, y2: height }),
      svg("text", { class: "soft", x: place, y: 12, "text-anchor": at === 0 ? "start" : "middle", text: `${at} s` }),
    );
  }
  tasks.forEach((task, row) => {
    const y = TOP + row * ROW;
    const spans = spansOf(task, lanes, until);
    picture.append(svg("text", { x: LEFT, y: y + 11, text: oneLine(task.title, 34) }));
    picture.append(svg("text", { class: "soft", x: LEFT + WIDTH, y: y + 11, "text-anchor": "end", text: task.over ? oneLine(task.outcome, 14) : "under way" }));
    picture.append(svg("rect", { class: "track", x: LEFT, y: y + 17, width: WIDTH, height: 10, rx: 3 }));
    for (const span of spans) {
      used.add(span.kind);
      const words = `${task.title}: ${WORDS[span.kind]}, ${(span.begin - lanes.began).toFixed(3)} s to ${(span.end - lanes.began).toFixed(3)} s`;
      const width = Math.max(1.5, x(span.end) - x(span.begin)).toFixed(1);
      picture.append(svg("rect", { class: `span ${span.kind}`, x: x(span.begin).toFixed(1), y: y + 17, width, height: 10, rx: 2 }, svg("title", { text: visible(words) })));
    }
  });
  if (lanes.stopAt !== null) {
    const place = x(lanes.stopAt).toFixed(1);
    picture.append(svg("line", { class: "stop", x1: place, y1: 18, x2: place, y2: height }, svg("title", { text: "asked to stop" })));
  }
  return [picture, legend(used), table(lanes, tasks, until)];
}

function legend(used) {
  return el("p", { class: "legend" }, ...Object.keys(WORDS).filter((kind) => used.has(kind)).map((kind) => el("span", {}, el("i", { class: kind }), WORDS[kind])));
}

/** The same in numbers, for who cannot see the drawing. */
function table(lanes, tasks, until) {
  const rows = tasks.map((task) => {
    const sums = new Map();
    for (const span of spansOf(task, lanes, until)) sums.set(span.kind, (sums.get(span.kind) ?? 0) + span.end - span.begin);
    const said = [...sums].map(([kind, seconds]) => `${WORDS[kind]} ${seconds.toFixed(2)} s`).join(", ");
    return el("tr", {}, el("th", { scope: "row", text: oneLine(task.title, 60) }), el("td", { text: said }), el("td", { text: task.over ? task.outcome : "under way" }));
  });
  return el("details", { class: "numbers" }, el("summary", { text: "In numbers" }), el("table", {}, el("tbody", {}, ...rows)));
}

function ticks(seconds) {
  const step = [1, 2, 5, 10].map((times) => times * 10 ** Math.floor(Math.log10(seconds / 5))).find((one) => one * 5 >= seconds) ?? seconds;
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, place) => Number((place * step).toFixed(6))).filter((at) => at / seconds < 0.97 || at === 0);
}
