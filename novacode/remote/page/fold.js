// A session as it is shown: a fold over stamped events. No DOM. Taking an event twice, or one with its fragments left
// out because its turn is committed, gives the same picture.

import { Lanes } from "./lanes.js";

const MOST_OUTPUT = 200_000; // characters of live output that are kept of one call; the result has what counts

export class Conversation {
  constructor() {
    this.items = []; // what is shown, in order; each has a `kind`, and `seq` of the event it began with
    this.calls = new Map(); // call id to its item
    this.runs = new Map(); // run id to {id, prompt, turn, ended, lanes}
    this.lastSeq = 0;
    this.changed = new Set(); // items to draw again
    this.removed = new Set(); // items that are gone
    this.heard = []; // what to tell a person who does not see the page
    this.run = null;
  }

  /** Take a stamped event. One that was seen already changes nothing. */
  take(event) {
    if (!(event.seq > this.lastSeq)) return;
    this.lastSeq = event.seq;
    if (!this.run || this.run.id !== event.run_id || event.type === "run_began") this.#enter(event);
    this.run.lanes.take(event);
    const handler = HANDLERS[event.type];
    if (handler) handler.call(this, event, this.run);
  }

  #enter(event) {
    const known = this.runs.get(event.run_id);
    this.run = known ?? { id: event.run_id, prompt: "", turn: 0, began: event.at, parts: new Map(), lanes: new Lanes(event), ended: null };
    this.runs.set(event.run_id, this.run);
  }

  add(kind, event, more) {
    const item = { kind, seq: event.seq, at: event.at, runId: event.run_id, ...more };
    this.items.push(item);
    this.changed.add(item);
    return item;
  }

  /** Return the text or thinking item of part `index` of the turn under way. */
  part(kind, event, run) {
    let item = run.parts.get(event.index);
    if (!item) {
      item = this.add(kind, event, { text: "", done: false });
      run.parts.set(event.index, item);
    }
    this.changed.add(item);
    return item;
  }

  /** Return the item of a call; what is not known yet of it is filled in by later events. */
  call(id, name, event) {
    let item = this.calls.get(id);
    if (!item) {
      item = this.add("call", event, {
        id, name, args: null, raw: "", problem: "", phase: "opened", since: event.at, waitsFor: [], output: "", dropped: 0,
        result: null, seconds: 0, files: null, hooks: [], asked: null, answers: [],
      });
      this.calls.set(id, item);
    }
    this.changed.add(item);
    return item;
  }

  settle(result, seconds, event) {
    const item = this.call(result.call_id, result.name, event);
    if (item.result) return;
    item.result = result;
    item.seconds = seconds ?? 0;
    item.phase = "settled";
    this.heard.push(`${result.name}: ${result.outcome.replaceAll("_", " ")}`);
  }

  /** End what only a running turn can have: text that grows, and calls that nothing will be heard of any more. */
  close(run) {
    for (const item of run.parts.values()) {
      if (!item.done) {
        item.done = true;
        this.changed.add(item);
      }
    }
    run.parts.clear();
  }
}

const HANDLERS = {
  run_began(event, run) {
    run.prompt = textOf(event.prompt?.parts);
    run.model = event.model;
    this.add("prompt", event, { text: run.prompt, images: (event.prompt?.parts ?? []).filter((part) => part.type === "image").length });
  },
  turn_began(event, run) {
    this.close(run);
    run.turn = event.number;
  },
  text_delta(event, run) {
    const item = this.part("text", event, run);
    if (!item.done) item.text += event.text;
  },
  thinking_delta(event, run) {
    const item = this.part("thinking", event, run);
    if (!item.done) item.text += event.text;
  },
  part_done(event, run) {
    const { type } = event.part;
    if (type === "server_block") {
      this.add("notice", event, { level: "info", text: `The provider did something by itself: ${event.part.name || "a block of its own"}` });
      return;
    }
    if (!event.part.text && !run.parts.has(event.index)) return; // reasoning that is sealed and shows nothing
    const item = this.part(type === "thinking" ? "thinking" : "text", event, run);
    item.text = event.part.text;
    item.done = true;
  },
  call_opened(event) {
    this.call(event.id, event.name, event);
  },
  call_delta(event) {
    const item = this.call(event.id, event.name, event);
    if (item.args === null) item.raw += event.fragment;
  },
  call_ready(event) {
    const item = this.call(event.call.id, event.call.name, event);
    item.args = event.call.arguments;
    item.raw = "";
    if (item.phase === "opened") item.phase = "submitted";
  },
  call_broken(event) {
    const item = this.call(event.call.id, event.call.name, event);
    item.raw = event.call.raw;
    item.problem = event.call.problem;
  },
  call_moved(event) {
    const item = this.call(event.call_id, event.name, event);
    if (item.phase !== event.phase) item.since = event.at;
    if (!item.result) item.phase = event.phase;
    item.waitsFor = event.waits_for ?? [];
  },
  call_output(event) {
    const item = this.call(event.call_id, event.name, event);
    item.output += event.text;
    if (item.output.length > MOST_OUTPUT * 1.25) {
      item.dropped += item.output.length - MOST_OUTPUT;
      item.output = item.output.slice(-MOST_OUTPUT);
    }
  },
  approval_asked(event) {
    const item = this.call(event.call.id, event.call.name, event);
    item.args = event.call.arguments; // what will run: hooks have had their say
    item.asked = event.approval_id;
    if (!item.result) item.phase = "asking";
    item.since = event.at;
  },
  approval_closed(event) {
    const item = this.call(event.call_id, event.name, event);
    item.asked = null;
    item.answers.push({ decision: event.decision, by: event.by });
    if (!item.result) item.phase = "authorising";
  },
  hook_ran(event) {
    if (event.call_id) this.call(event.call_id, event.name, event).hooks.push(event);
    else if (!["pass", "allow"].includes(event.outcome)) {
      this.add("notice", event, { level: "info", text: `Hook ${event.command} (${event.event}): ${event.outcome}${event.reason ? `, ${event.reason}` : ""}` });
    }
  },
  files_changed(event) {
    this.call(event.call_id, event.name, event).files = event;
  },
  call_settled(event) {
    this.settle(event.result, event.seconds, event);
  },
  attempt_dropped(event, run) {
    for (const item of run.parts.values()) this.removed.add(item);
    this.items = this.items.filter((item) => !this.removed.has(item));
    run.parts.clear();
    const again = `Again in ${Number(event.delay.toPrecision(2))} s.`;
    this.add("notice", event, { level: "warning", text: `The model failed (${event.failure.kind.replaceAll("_", " ")}: ${event.failure.message}). ${again}` });
  },
  turn_committed(event, run) {
    const { message, results = [] } = event.exchange;
    const texts = [...run.parts.values()].some((item) => item.kind === "text");
    (message.parts ?? []).forEach((part, place) => {
      if (part.type === "text" && part.text && !texts) this.add("text", event, { text: part.text, done: true });
      if (part.type !== "tool_call" && part.type !== "broken_call") return;
      const item = this.call(part.id, part.name, event);
      if (part.type === "tool_call") item.args ??= part.arguments;
      else [item.raw, item.problem] = [part.raw, part.problem];
      item.place = place;
    });
    for (const result of results) this.settle(result, this.calls.get(result.call_id)?.seconds, event);
    this.close(run);
  },
  user_added(event) {
    this.add("notice", event, { level: "info", text: `Told to the model: ${textOf(event.user.parts)}` });
  },
  notice(event) {
    if (event.level !== "debug") this.add("notice", event, { level: event.level, text: event.text });
  },
  compacted(event) {
    const sizes = event.before_tokens ? ` (about ${event.before_tokens} to ${event.after_tokens ?? 0} tokens)` : "";
    this.add("notice", event, { level: "info", text: `The conversation was shortened for the model${sizes}.`, more: event.summary ?? "" });
  },
  run_ended(event, run) {
    this.close(run);
    run.ended = event;
    for (const item of this.calls.values()) {
      if (item.runId === run.id && !item.result && item.phase !== "gone") {
        item.phase = "gone";
        item.asked = null;
        this.changed.add(item);
      }
    }
    this.add("ended", event, { ended: event, seconds: event.at - run.began });
    this.heard.push(`The run has ended: ${event.status}`);
  },
};

function textOf(parts = []) {
  return parts.filter((part) => part.type === "text").map((part) => part.text).join("");
}
