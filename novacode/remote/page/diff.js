// Unified diffs and long output, drawn so that the eye finds what matters and the page stays quick.

import { el, refill } from "./dom.js";
import { counted, marked, visible } from "./text.js";

const FOLDED_DIFF = 60; // lines shown before somebody asks for the rest
const FOLDED_HEAD = 12;
const FOLDED_TAIL = 12;
const CHUNK = 1000; // lines that are one block for the browser, which skips what is out of sight
const MOST_LINES = 50_000;

/** Return a diff with `+` and `−` as text. `whole` shows all of it at once: where somebody has to decide about it. */
export function diffView(text, whole = false) {
  const lines = text.replace(/\n$/, "").split("\n");
  const code = el("div", { class: "lines", tabindex: "0", role: "region", "aria-label": "Changes" });
  const node = el("div", { class: "diff" }, code);
  const shown = whole || lines.length <= FOLDED_DIFF + 10 ? lines.length : FOLDED_DIFF;
  code.append(...diffLines(lines.slice(0, shown), whole));
  if (shown < lines.length) {
    const more = el("button", { type: "button", class: "fold", text: `Show ${counted(lines.length - shown, "more line")}` });
    more.addEventListener("click", () => {
      code.append(...diffLines(lines.slice(shown), whole));
      more.remove();
      code.focus();
    });
    node.append(more);
  }
  return node;
}

/** Return how many lines a diff adds and takes away. */
export function diffSize(text) {
  let added = 0;
  let removed = 0;
  for (const line of text.split("\n")) {
    if (line.startsWith("+") && !line.startsWith("+++ ")) added += 1;
    if (line.startsWith("-") && !line.startsWith("--- ")) removed += 1;
  }
  return { added, removed };
}

function diffLines(lines, exact) {
  let header = true; // before the first hunk, `---` and `+++` name files
  return lines.map((line) => {
    const head = line[0];
    if (line.startsWith("@@")) header = false;
    if (header && (line.startsWith("--- ") || line.startsWith("+++ "))) return row("file", "", line, exact);
    if (line.startsWith("@@")) return row("hunk", "", line, exact);
    if (head === "+") return row("added", "+", line.slice(1), exact);
    if (head === "-") return row("removed", "−", line.slice(1), exact);
    return row("", " ", line.slice(1), exact);
  });
}

function row(kind, sign, text, exact) {
  return el("div", { class: `line ${kind}` }, el("span", { class: "sign", text: sign }), el("span", { class: "text" }, exact ? marked(text) : visible(text)));
}

/** Shows output that may grow: its end while it does, its beginning and end afterwards, all of it when asked. */
export class OutputView {
  constructor(label) {
    this.pre = el("div", { class: "output", tabindex: "0", role: "region", "aria-label": label });
    this.whole = false;
    this.text = null;
  }

  show(text, live, dropped = 0) {
    if (text === this.text && live === this.live) return;
    [this.text, this.live] = [text, live];
    const lines = text.replace(/\n+$/, "").split("\n");
    const note = dropped ? [el("p", { class: "cut", text: `The first ${counted(dropped, "character")} are not kept here.` })] : [];
    if (live) {
      refill(this.pre, ...note, block(lines.slice(-FOLDED_TAIL)));
    } else if (this.whole || lines.length <= FOLDED_HEAD + FOLDED_TAIL + 4) {
      refill(this.pre, ...note, ...chunks(lines));
    } else {
      const hidden = lines.length - FOLDED_HEAD - FOLDED_TAIL;
      const more = el("button", { type: "button", class: "fold", text: `Show ${counted(hidden, "more line")}` });
      more.addEventListener("click", () => {
        this.whole = true;
        refill(this.pre, ...note, ...chunks(lines));
        this.pre.focus();
      });
      refill(this.pre, ...note, block(lines.slice(0, FOLDED_HEAD)), more, block(lines.slice(-FOLDED_TAIL)));
    }
  }
}

function chunks(lines) {
  const made = [];
  for (let at = 0; at < Math.min(lines.length, MOST_LINES); at += CHUNK) made.push(block(lines.slice(at, Math.min(at + CHUNK, MOST_LINES))));
  if (lines.length > MOST_LINES) made.push(el("p", { class: "cut", text: `${counted(lines.length - MOST_LINES, "more line")} are not shown.` }));
  return made;
}

function block(lines) {
  return el("pre", { text: visible(lines.join("\n")) });
}
