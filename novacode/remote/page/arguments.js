// The arguments of a call: in one line for its card, and in full, with nothing that hides, where somebody decides.

import { el } from "./dom.js";
import { marked, oneLine } from "./text.js";

const TELLING = ["command", "path", "pattern", "url", "query", "task"];

/** Return one line that says the most about a call. */
export function summaryOf(item) {
  const { args } = item;
  if (!args) return oneLine(item.raw, 120);
  const key = TELLING.find((name) => typeof args[name] === "string");
  return key ? oneLine(args[key], 200) : Object.keys(args).length ? oneLine(JSON.stringify(args), 200) : "";
}

/** Return every argument in full: texts as they are, what cannot be seen marked. */
export function argumentsView(name, args) {
  const entries = Object.entries(args);
  if (!entries.length) return el("p", { class: "soft", text: "No arguments." });
  if (entries.length === 1 && entries[0][0] === "command") return block(entries[0][1]);
  const list = el("dl", { class: "arguments" });
  for (const [key, value] of entries) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const short = text.length <= 80 && !text.includes("\n");
    list.append(el("dt", {}, marked(key)), el("dd", {}, short ? el("code", {}, marked(text)) : block(text)));
  }
  return list;
}

function block(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return el("pre", { class: "exact", tabindex: "0" }, marked(text));
}
