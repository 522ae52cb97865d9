// What stands inside a line of Markdown: code, bold, italic, struck, links. Linear in the length, of bounded depth.

import { el } from "./dom.js";
import { visible } from "./text.js";

const DEEPEST = 8;
const SPECIAL = /[\\`*_~[!<h]/g;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const BARE = /https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_]/y;
const MARKS = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "del"],
  ["*", "em"],
  ["_", "em"],
];

/** Return the nodes of one stretch of text. `missing` remembers what has no end, so that it is looked for only once. */
export function inline(text, depth = 0, missing = new Set()) {
  const made = [];
  let plain = "";
  let at = 0;
  const push = (node) => {
    if (plain) made.push(plain);
    plain = "";
    made.push(node);
  };
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text);
    const upto = next ? next.index : text.length;
    plain += text.slice(at, upto);
    at = upto;
    if (!next) break;
    const found = special(text, at, depth, missing);
    if (!found) {
      plain += text[at];
      at += 1;
    } else if (typeof found[0] === "string") {
      plain += found[0];
      at = found[1];
    } else {
      push(found[0]);
      at = found[1];
    }
  }
  if (plain) made.push(plain);
  return made;
}

function special(text, at, depth, missing) {
  const mark = text[at];
  if (mark === "\\") return at + 1 < text.length && PUNCTUATION.test(text[at + 1]) ? [text[at + 1], at + 2] : null;
  if (mark === "`") return code(text, at, missing);
  if (mark === "h") return bare(text, at);
  if (depth >= DEEPEST) return null;
  if (mark === "<") return angled(text, at);
  if (mark === "[") return link(text, at, depth, missing, "");
  if (mark === "!") return text[at + 1] === "[" ? link(text, at + 1, depth, missing, "picture: ") : null;
  return emphasis(text, at, depth, missing);
}

function code(text, at, missing) {
  let end = at;
  while (text[end] === "`") end += 1;
  const ticks = text.slice(at, end);
  if (missing.has(ticks)) return [ticks, end];
  for (let close = text.indexOf(ticks, end); close !== -1; ) {
    let after = close;
    while (text[after] === "`") after += 1;
    if (after - close === ticks.length) {
      const inner = text.slice(end, close);
      return [el("code", { text: /^ .*\S.* $/.test(inner) ? inner.slice(1, -1) : inner }), after];
    }
    close = text.indexOf(ticks, after);
  }
  missing.add(ticks);
  return [ticks, end];
}

function emphasis(text, at, depth, missing) {
  for (const [mark, tag] of MARKS) {
    if (!text.startsWith(mark, at) || missing.has(mark)) continue;
    if (mark.length === 1 && text[at + 1] === mark) continue; // a double one that opens nothing is not two single ones
    const begin = at + mark.length;
    if (!text[begin] || /\s/.test(text[begin])) continue;
    if (mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[at - 1] ?? " ")) continue; // snake_case
    const end = closing(text, begin, mark);
    if (end === -1) {
      missing.add(mark);
      continue;
    }
    return [el(tag, {}, ...inline(text.slice(begin, end), depth + 1)), end + mark.length];
  }
  // A run of marks that opens nothing is taken whole: **** is no emphasis of nothing.
  let end = at + 1;
  while (text[end] === text[at]) end += 1;
  return [text.slice(at, end), end];
}

function closing(text, from, mark) {
  for (let at = text.indexOf(mark, from); at !== -1; at = text.indexOf(mark, at + mark.length)) {
    if (at === from || /\s/.test(text[at - 1]) || text[at - 1] === "\\") continue;
    if (mark.length === 1 && text[at + 1] === mark) {
      at += 1; // the double one ends something else
      continue;
    }
    if (mark[0] === "_" && /[\p{L}\p{N}]/u.test(text[at + mark.length] ?? " ")) continue;
    if (mark.length === 2 && text[at + 2] === mark[0] && text[at + 3] !== mark[0]) return at + 1; // ***both***
    return at;
  }
  return -1;
}

const LONGEST_LABEL = 1000;
const LONGEST_TARGET = 2000;

function link(text, at, depth, missing, before) {
  // Bounded on both sides: a text of opening brackets alone stays linear.
  if (missing.has("](")) return null;
  const middle = text.indexOf("](", at);
  if (middle === -1) {
    missing.add("](");
    return null;
  }
  if (middle - at > LONGEST_LABEL) return null;
  const label = text.slice(at + 1, middle);
  if (label.includes("[")) return null;
  let open = 1;
  let end = middle + 2;
  const last = Math.min(text.length, end + LONGEST_TARGET);
  for (; end < last; end += 1) {
    if (text[end] === "(") open += 1;
    if (text[end] === ")" && (open -= 1) === 0) break;
  }
  if (open !== 0) return null;
  const target = text.slice(middle + 2, end).trim().replace(/\s+["'(].*$/, "").replace(/^<(.*)>$/, "$1");
  const url = safe(target);
  if (!url) return null;
  return [anchor(url, [before, ...inline(label, depth + 1)], label), end + 1];
}

function angled(text, at) {
  const end = text.indexOf(">", at);
  if (end === -1 || end - at > LONGEST_TARGET) return null;
  const target = text.slice(at + 1, end);
  const url = /\s/.test(target) ? null : safe(target);
  return url ? [anchor(url, [target], target), end + 1] : null;
}

function bare(text, at) {
  if (/[\p{L}\p{N}]/u.test(text[at - 1] ?? " ")) return null;
  BARE.lastIndex = at;
  const found = BARE.exec(text);
  const url = found && safe(found[0]);
  return url ? [anchor(url, [found[0]], found[0]), at + found[0].length] : null;
}

/** Return the address that `target` is, where it is one that a browser may open; else `null`. */
export function safe(target) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return null;
  try {
    const url = new URL(target);
    return ["http:", "https:", "mailto:"].includes(url.protocol) && !url.username && !url.password ? url : null;
  } catch {
    return null;
  }
}

/** Return a link that says where it leads, where its words do not. */
function anchor(url, children, label) {
  const where = url.protocol === "mailto:" ? url.pathname : url.host;
  const node = el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow", title: visible(url.href) });
  node.append(...children.filter((child) => child !== ""));
  if (!label.includes(where)) node.append(el("span", { class: "where", text: ` (${visible(where)})` }));
  return node;
}
