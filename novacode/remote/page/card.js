// A call as a card: what it is, where it stands, what came of it.

import { argumentsView, summaryOf } from "./arguments.js";
import { OutputView, diffSize, diffView } from "./diff.js";
import { el, icon, refill } from "./dom.js";
import { counted, duration, oneLine, visible } from "./text.js";

const NOT_RUN = {
  denied: "denied, not run",
  hook_denied: "refused by a hook, not run",
  unknown_tool: "no such tool, not run",
  disabled: "tool is off, not run",
  invalid: "wrong arguments, not run",
  broken: "incomplete, not run",
  skipped: "skipped, not run",
};
const PREVIEW = 5; // lines of output that a card shows without being opened

let cards = 0;

export class CallCard {
  constructor(item, actions) {
    this.item = item;
    this.actions = actions;
    this.open = false;
    this.id = `card-${(cards += 1)}`;
    this.glyph = el("span", { class: "glyph", "aria-hidden": "true" });
    this.name = el("span", { class: "name" });
    this.summary = el("code", { class: "summary" });
    this.state = el("span", { class: "state" });
    this.button = el("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-controls": this.id, on: { click: () => this.toggle() } });
    this.button.append(this.glyph, this.name, this.summary, this.state, icon("down"));
    this.stop = el("button", { type: "button", class: "quiet stop-one", text: "Stop this call", hidden: true, on: { click: () => actions.stopCall(item) } });
    this.preview = el("div", { class: "preview" });
    this.body = el("div", { class: "body", id: this.id, hidden: true });
    this.node = el("article", { class: "call" }, el("h3", {}, this.button), this.stop, this.preview, this.body);
    this.output = null;
    this.update();
  }

  toggle() {
    this.open = !this.open;
    this.button.setAttribute("aria-expanded", String(this.open));
    this.body.hidden = !this.open;
    this.preview.hidden = this.open;
    if (this.open) this.#drawBody();
    else this.#drawPreview();
  }

  update() {
    const { item } = this;
    const [state] = stateOf(item);
    this.node.dataset.state = state;
    this.node.dataset.call = item.id;
    this.glyph.textContent = GLYPHS[state];
    this.name.textContent = oneLine(item.name, 60);
    if (this.args === undefined || this.args !== item.args || !item.args) this.summary.textContent = summaryOf(item);
    this.args = item.args;
    this.tick();
    this.stop.hidden = item.phase !== "running" || Boolean(item.result);
    if (this.open) this.#drawBody();
    else this.#drawPreview();
  }

  /** Say how long it has taken until now. Returns whether that will change by itself. */
  tick() {
    const [state, words] = stateOf(this.item);
    const live = state === "running" || state === "asking" || state === "queued";
    const elapsed = live ? duration(this.actions.clock() - this.item.since) : this.item.result?.began && this.item.seconds >= 0.05 ? duration(this.item.seconds) : "";
    this.state.textContent = [words, elapsed].filter(Boolean).join(" · ");
    return live;
  }

  #drawPreview() {
    const { item } = this;
    const text = item.result ? outcomeText(item) : item.output;
    const lines = text.trimEnd().split("\n");
    if (item.result?.diff) {
      const { added, removed } = diffSize(item.result.diff);
      if (this.previewed !== item.result) refill(this.preview, el("p", { class: "size" }, el("span", { class: "plus", text: `+${added}` }), " ", el("span", { class: "minus", text: `−${removed}` })), diffView(item.result.diff));
      this.previewed = item.result;
    } else if (item.result && NOT_RUN[item.result.outcome]) {
      refill(this.preview, el("p", { class: "why", text: visible(lines.slice(0, PREVIEW).join("\n")) }));
    } else if (lines[0] && (!item.result || item.result.outcome !== "ok" || item.name === "shell")) {
      const rest = lines.length - PREVIEW;
      refill(this.preview, rest > 0 && el("p", { class: "cut", text: `… ${counted(rest, "line")} before` }), el("pre", { text: visible(lines.slice(-PREVIEW).join("\n")) }));
    } else refill(this.preview);
    this.preview.hidden = !this.preview.childNodes.length;
  }

  #drawBody() {
    const { item } = this;
    const key = [item.args, item.result, item.answers.length, item.hooks.length, item.files];
    if (!this.drawn || key.some((part, place) => part !== this.drawn[place])) {
      this.drawn = key;
      this.output ??= new OutputView(`Output of ${oneLine(item.name, 40)}`);
      refill(this.body, ...this.#sections());
    }
    if (item.result) this.output.show(outcomeText(item), false);
    else this.output.show(item.output, true, item.dropped);
  }

  *#sections() {
    const { item } = this;
    yield section("What was asked for", item.args ? argumentsView(item.name, item.args) : el("pre", { text: visible(item.raw || "Not complete yet.") }));
    if (item.problem) yield section("Why it is incomplete", el("p", { text: visible(item.problem) }));
    if (item.result?.diff) yield section("Changes", diffView(item.result.diff));
    if (item.result ? outcomeText(item) : item.output) yield section(item.result?.began === false ? "What the model was told" : "Output", this.output.pre);
    if (item.result?.note) yield section("Note", el("p", { text: visible(item.result.note) }));
    const files = item.files && [...changes(item.files)];
    if (files?.length) yield section("Files", el("ul", { class: "files" }, ...files));
    const told = [...item.hooks.map(hookWords), ...item.answers.filter((one) => one.decision !== "abandoned").map((one) => `${one.decision === "allow" ? "Allowed" : "Denied"} by ${one.by}`)];
    if (told.length) yield section("Before it ran", el("ul", {}, ...told.map((text) => el("li", { text: visible(text) }))));
    yield el("p", { class: "identity", text: item.id });
  }
}

const GLYPHS = { writing: "…", checking: "…", asking: "?", queued: "…", running: "●", ok: "✓", failed: "✕", refused: "⊘", stopped: "■", gone: "–" };

/** Return the state of a call as a word for its looks, and in words for people. */
export function stateOf(item) {
  const { result } = item;
  if (result) {
    const { outcome } = result;
    if (outcome === "ok") return ["ok", "done"];
    if (outcome === "error") return ["failed", result.exit_code ? `failed, exit code ${result.exit_code}` : "failed"];
    if (outcome === "timeout") return ["failed", "timed out"];
    if (outcome === "lost") return ["failed", "lost: NovaCode ended while it ran"];
    if (outcome === "cancelled") return ["stopped", result.began ? "stopped" : "stopped, not run"];
    return ["refused", NOT_RUN[outcome] ?? outcome.replaceAll("_", " ")];
  }
  switch (item.phase) {
    case "opened":
      return ["writing", "being written"];
    case "asking":
      return ["asking", "waits for an answer"];
    case "queued":
      return ["queued", item.waitsFor.length ? `waits for ${counted(item.waitsFor.length, "other call")}` : "queued"];
    case "running":
      return ["running", "running"];
    case "gone":
      return ["gone", "no result"];
    default:
      return ["checking", "being checked"];
  }
}

function outcomeText(item) {
  const parts = item.result.content ?? [];
  return parts.map((part) => (part.type === "text" ? part.text : `[a picture, ${part.media_type}]`)).join("");
}

function section(title, ...children) {
  return el("section", {}, el("h4", { text: title }), ...children);
}

function* changes(files) {
  for (const [kind, sign] of [["created", "+"], ["modified", "~"], ["deleted", "−"], ["uncovered", "!"]]) {
    for (const path of files[kind] ?? []) yield el("li", {}, el("span", { class: `sign ${kind}`, text: `${sign} ` }), el("code", { text: visible(path) }), ` ${kind === "uncovered" ? "changed and not kept" : kind}`);
  }
  if (files.more) yield el("li", { text: `and ${files.more} more` });
  if (files.problem) yield el("li", { text: visible(files.problem) });
}

function hookWords(hook) {
  return `Hook ${hook.command} (${hook.event}): ${hook.outcome}${hook.reason ? `, ${hook.reason}` : ""}`;
}
