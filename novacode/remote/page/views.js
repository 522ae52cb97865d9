// What stands in the conversation beside calls: what a person said, what the model said, notices, and how a run ended.

import { CallCard } from "./card.js";
import { el, icon } from "./dom.js";
import { MarkdownStream } from "./markdown.js";
import { counted, duration, number, oneLine, visible } from "./text.js";

/** Return the view of an item: it has a `node`, and `update()` draws it again. `actions` is what its buttons do. */
export function viewOf(item, actions) {
  switch (item.kind) {
    case "call":
      return new CallCard(item, actions);
    case "text":
      return new TextView(item);
    case "thinking":
      return new ThinkingView(item);
    case "prompt":
      return new PromptView(item, actions);
    case "ended":
      return new EndView(item);
    default:
      return new NoticeView(item);
  }
}

class TextView {
  constructor(item) {
    this.item = item;
    this.node = el("div", { class: "said prose" });
    this.stream = new MarkdownStream(this.node);
    this.update();
  }

  update() {
    this.stream.show(this.item.text, this.item.done);
    this.node.classList.toggle("growing", !this.item.done);
    this.node.hidden = !this.item.text.trim();
  }
}

class ThinkingView {
  constructor(item) {
    this.item = item;
    this.words = el("summary");
    this.text = el("div", { class: "text" });
    this.node = el("details", { class: "thinking" }, this.words, this.text);
    this.node.addEventListener("toggle", () => this.update());
    this.update();
  }

  update() {
    this.words.textContent = this.item.done ? "Reasoning" : "Reasoning …";
    if (this.node.open) this.text.textContent = visible(this.item.text, true);
    this.node.hidden = !this.item.text.trim();
  }
}

class PromptView {
  constructor(item, actions) {
    const images = item.images ? el("p", { class: "soft", text: `with ${counted(item.images, "picture")}` }) : null;
    const back = el("button", { type: "button", class: "quiet", on: { click: () => actions.rewind(item.runId) } }, icon("back"), "Rewind files");
    back.title = "Put files back to before this";
    this.node = el("div", { class: "prompt" }, el("h2", { class: "hidden", text: "You" }), el("div", { class: "words", text: visible(item.text, true) }), images, back);
  }

  update() {}
}

class NoticeView {
  constructor(item) {
    const kind = item.level === "warning" ? "warning" : "info";
    const words = el("span", {}, el("b", { text: kind === "warning" ? "Warning: " : "" }), visible(item.text, true));
    this.node = item.more
      ? el("details", { class: `notice ${kind}` }, el("summary", {}, words), el("div", { class: "text", text: visible(item.more, true) }))
      : el("p", { class: `notice ${kind}` }, words);
  }

  update() {}
}

const STATUS = {
  completed: ["Done", "good"],
  refused: ["Refused", "bad"],
  failed: ["Failed", "bad"],
  limit: ["Stopped by a limit", "bad"],
  cancelled: ["Stopped", "stopped"],
};

class EndView {
  constructor(item) {
    const { ended } = item;
    const [title, kind] = STATUS[ended.status] ?? [ended.status, "bad"];
    const facts = [...endFacts(item)].join(" · ");
    const heading = el("p", {}, el("b", { text: title }), facts ? ` · ${visible(facts)}` : "");
    this.node = el("div", { class: `ended ${kind}` }, heading, ...endWords(ended).map((text) => el("p", { text: visible(text) })));
  }

  update() {}
}

function* endFacts({ ended, seconds }) {
  if (ended.reason && ended.reason !== ended.status) yield ended.reason.replaceAll("_", " ");
  if (seconds > 0) yield duration(seconds);
  if (ended.turns) yield counted(ended.turns, "turn");
  const { total, ok, denied } = ended.calls ?? {};
  if (total) yield `${counted(total, "call")}${ok !== total ? `, ${ok ?? 0} ok` : ""}${denied ? `, ${denied} denied` : ""}`;
  const usage = ended.usage ?? {};
  if (usage.input || usage.output) yield `${number(usage.input ?? 0)} tokens in, ${number(usage.output ?? 0)} out`;
  if (typeof ended.cost_usd === "number") yield `$${ended.cost_usd.toFixed(4)}`;
}

function endWords(ended) {
  const made = [];
  const { processes = 0, tasks = 0, escalated = 0, survivors = [] } = ended.reaped ?? {};
  if (ended.failure) made.push(ended.failure.message);
  if (ended.jobs?.length) made.push(`Background jobs stopped with it: ${ended.jobs.map((job) => oneLine(job, 60)).join(", ")}.`);
  if (processes || tasks) {
    const killed = escalated ? `, ${escalated} of them by force` : "";
    const what = [processes && counted(processes, "process", "processes"), tasks && counted(tasks, "task")].filter(Boolean).join(" and ");
    made.push(`${what} stopped${killed}. ${survivors.length ? "" : "Nothing is left running."}`);
  }
  if (survivors.length) made.push(`Still alive: ${survivors.map((pid) => `process ${pid}`).join(", ")}. End them yourself.`);
  if (ended.status === "cancelled") made.push("Stopping is not undoing: what a call did stays done. “Rewind files” puts files back.");
  return made;
}
