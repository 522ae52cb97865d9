// Markdown as models write it, drawn as DOM nodes. Text stays text: tags in it are shown, never made.
//
// Headings, paragraphs, lists, quotes, fenced code, rules, small tables; code, bold, italic, struck, links. What is
// neither is shown as it was written. Linear in the length of the text, and of bounded depth.

import { el } from "./dom.js";
import { inline } from "./inline.js";
import { visible } from "./text.js";

const DEEPEST = 8;
const LARGEST = 200_000; // characters; more than any answer, and still drawn in a moment
const LONG_TAIL = 4_000; // characters of a block that is not whole, from which on it is drawn less often
const PAUSE = 120; // milliseconds between two drawings of one
const WIDEST_TABLE = 12;
const LONGEST_TABLE = 200;

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)/;
const QUOTE = /^ {0,3}> ?/;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** Return a fragment that shows `text`. */
export function markdown(text) {
  const made = document.createDocumentFragment();
  const shown = visible(text, true);
  if (shown.length > LARGEST) {
    made.append(el("pre", { class: "plain", text: shown }));
    return made;
  }
  made.append(...blocks(shown.split("\n"), 0));
  return made;
}

/**
 * Return the length of the beginning of `text` that further text cannot change: whole blocks, up to the last blank line
 * outside of a fence that is followed by something that neither is nor continues a list.
 */
export function settledLength(text) {
  let fence = "";
  let settled = 0;
  let at = 0;
  let blank = false;
  // The last line is not whole: what it will be is not known before its end.
  for (const line of text.split("\n").slice(0, -1)) {
    const opened = FENCE.exec(line);
    if (fence) {
      if (opened && opened[2].startsWith(fence) && !opened[3].trim()) fence = "";
    } else {
      if (blank && line.trim() && !/^\s/.test(line) && !ITEM.test(line) && !QUOTE.test(line)) settled = at;
      if (opened) fence = opened[2];
    }
    blank = !fence && !line.trim();
    at += line.length + 1;
  }
  return settled;
}

/** Shows text that grows: blocks that are whole are drawn once and left alone. */
export class MarkdownStream {
  constructor(node) {
    this.node = node;
    this.tail = el("div", { class: "tail" });
    this.settled = 0;
    this.source = "";
    this.drawn = -Infinity;
    this.node.replaceChildren(this.tail);
  }

  /** Show `text`, which begins with what was shown before, or (a part that was corrected) does not. */
  show(text, done) {
    if (text === this.source && !done) return;
    if (!text.startsWith(this.source.slice(0, this.settled))) {
      this.settled = 0;
      this.node.replaceChildren(this.tail);
    }
    this.source = text;
    // A long block is drawn anew as it grows: now and then, so that the page stays quick.
    const wait = this.drawn + PAUSE - performance.now();
    if (!done && text.length - this.settled > LONG_TAIL && wait > 0) {
      this.later ??= setTimeout(() => this.#draw(false), wait);
    } else this.#draw(done);
  }

  #draw(done) {
    clearTimeout(this.later);
    this.later = undefined;
    this.drawn = performance.now();
    const text = this.source;
    const rest = text.slice(this.settled);
    const more = done ? rest.length : settledLength(rest);
    if (more > 0) {
      this.tail.before(markdown(rest.slice(0, more)));
      this.settled += more;
    }
    this.tail.replaceChildren(markdown(text.slice(this.settled)));
  }
}

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [node, next] = block(lines, at, depth);
    made.push(node);
    at = next;
  }
  return made;
}

function block(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    // The page has its own h1 and h2; what a model writes stands below them.
    const level = Math.min(6, heading[1].length + 2);
    return [el(`h${level}`, { class: `h${heading[1].length}` }, ...inline(heading[2])), at + 1];
  }
  if (RULE.test(line)) return [el("hr"), at + 1];
  if (depth < DEEPEST && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEEPEST && ITEM.test(line)) return list(lines, at, depth);
  if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && DELIMITER.test(lines[at + 1])) {
    const made = table(lines, at);
    if (made) return made;
  }
  return paragraph(lines, at, depth);
}

function fenced(lines, at, [, indent, mark, info]) {
  const body = [];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const closing = FENCE.exec(lines[next]);
    if (closing && closing[2].startsWith(mark) && !closing[3].trim()) break;
    body.push(lines[next].startsWith(indent) ? lines[next].slice(indent.length) : lines[next]);
  }
  const language = info.trim().split(/\s+/)[0] ?? "";
  const code = el("pre", { tabindex: "0", role: "region", "aria-label": language ? `Code, ${language}` : "Code" });
  code.append(el("code", { text: body.join("\n") }));
  const node = el("figure", { class: "code" }, language && el("figcaption", { text: language.slice(0, 40) }), code);
  return [node, next + 1];
}

function quote(lines, at, depth) {
  const body = [];
  while (at < lines.length && lines[at].trim() && (QUOTE.test(lines[at]) || !starts(lines[at]))) {
    body.push(lines[at].replace(QUOTE, ""));
    at += 1;
  }
  return [el("blockquote", {}, ...blocks(body, depth + 1)), at];
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const kind = first[2].at(-1);
  const node = el(ordered ? "ol" : "ul", ordered && !/^0*1[.)]$/.test(first[2]) ? { start: parseInt(first[2], 10) } : {});
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[2].at(-1) !== kind) break;
    const width = item[1].length + item[2].length + Math.min(item[3].length || 1, 4);
    const body = [lines[at].slice(item[0].length)];
    at += 1;
    while (at < lines.length) {
      const line = lines[at];
      const blank = !line.trim();
      const next = blank ? filled(lines, at) : line;
      const inside = next !== undefined && indentOf(next) >= Math.min(width, 2);
      if (blank ? !inside : !inside && (starts(line) || !body.at(-1)?.trim())) break;
      body.push(inside ? line.slice(Math.min(indentOf(line), width)) : line);
      at += 1;
    }
    node.append(itemOf(body, depth));
    while (at < lines.length && !lines[at].trim() && ITEM.test(filled(lines, at) ?? "")) at += 1;
  }
  return [node, at];
}

/** Return the first line from `at` that is not blank; `undefined` where more than a few are. */
function filled(lines, at) {
  return lines.slice(at, at + 4).find((line) => line.trim());
}

function itemOf(body, depth) {
  const task = /^\[([ xX])\]\s+/.exec(body[0]);
  if (task) body[0] = body[0].slice(task[0].length);
  const made = blocks(body, depth + 1);
  const node = el("li", task ? { class: "task" } : {});
  if (task) node.append(el("span", { class: "check", text: task[1] === " " ? "☐ " : "☑ " }));
  // A tight item is its text, not a paragraph.
  if (made[0]?.tagName === "P" && (made.length === 1 || /^[OU]L$/.test(made[1].tagName))) made.splice(0, 1, ...made[0].childNodes);
  node.append(...made);
  return node;
}

function table(lines, at) {
  const heads = cells(lines[at]);
  const marks = cells(lines[at + 1]);
  if (heads.length !== marks.length || heads.length > WIDEST_TABLE) return null;
  const sides = marks.map((mark) => (/^:-+:$/.test(mark) ? "centre" : /-:$/.test(mark) ? "right" : null));
  const row = (tag, texts) =>
    el("tr", {}, ...heads.map((_, place) => el(tag, { class: sides[place] }, ...inline(texts[place] ?? ""))));
  const body = el("tbody");
  let next = at + 2;
  for (; next < lines.length && next - at < LONGEST_TABLE && lines[next].includes("|"); next += 1) body.append(row("td", cells(lines[next])));
  const node = el("table", {}, el("thead", {}, row("th", heads)), body);
  return [el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, node), next];
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function paragraph(lines, at, depth) {
  const body = [lines[at]];
  at += 1;
  while (at < lines.length && lines[at].trim() && !(starts(lines[at]) && depth < DEEPEST)) {
    body.push(lines[at]);
    at += 1;
  }
  const node = el("p");
  body.forEach((line, place) => {
    const hard = / {2,}$|\\$/.test(line);
    node.append(...inline(hard ? line.replace(/ +$|\\$/, "") : line.trim()));
    if (place < body.length - 1) node.append(hard ? el("br") : "\n");
  });
  return [node, at];
}

function starts(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}
