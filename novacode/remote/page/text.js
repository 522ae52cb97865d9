// Text of models, tools and files made safe to look at: nothing in it can hide, turn around or pass for something else.

// The same set as the terminal's: controls, format characters (zero width, bidi, tags), blanks that are none, lone
// surrogates, private use.
const HIDDEN =
  /[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ue000-\uf8ff\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\u{f0000}-\u{10ffff}]/gu;
const SUSPECT = /[^\t\n -~]/;
// Typography and the joiners of emoji and of several scripts: kept where no decision depends on the text.
const PROSE = new Set(["\xa0", "\xad", "\u200c", "\u200d", "\u202f", "\u3000"]);
// Spaces that push what follows them out of sight.
const GAP = /(?<=\S) {16,}(?=\S)/g;

/** Return `text` with every character that acts or hides written as an escape; with `prose`, typography stays. */
export function visible(text, prose = false) {
  let shown = String(text);
  if (SUSPECT.test(shown)) shown = shown.replace(HIDDEN, (found) => (prose && PROSE.has(found) ? found : escaped(found)));
  return prose ? shown : shown.replace(GAP, (found) => ` [${found.length} spaces] `);
}

/**
 * Return nodes that show `text`, each escape marked, so that `\u202e` written out cannot be taken for the character.
 * For what a person is asked to allow.
 */
export function marked(text) {
  const source = String(text);
  const made = document.createDocumentFragment();
  let at = 0;
  const mark = (index, length, shown, title) => {
    if (index > at) made.append(source.slice(at, index));
    const node = document.createElement("span");
    node.className = "escape";
    node.textContent = shown;
    node.title = title;
    made.append(node);
    at = index + length;
  };
  const found = [];
  for (const match of source.matchAll(HIDDEN)) found.push([match.index, match[0].length, escaped(match[0]), "a character that cannot be seen"]);
  for (const match of source.matchAll(GAP)) found.push([match.index, match[0].length, ` [${match[0].length} spaces] `, "a long gap"]);
  found.sort((one, other) => one[0] - other[0]);
  for (const one of found) mark(...one);
  made.append(source.slice(at));
  return made;
}

/** Return `text` visible, in one line of at most `width` characters. */
export function oneLine(text, width = 160) {
  // Cut first: what is folded into one line may be megabytes, and only its beginning is shown.
  const shown = visible(String(text).slice(0, width * 4)).split(/\s+/).join(" ").trim();
  return shown.length <= width ? shown : `${shown.slice(0, width - 1)}…`;
}

/** Return seconds in words: `0.4 s`, `12 s`, `3 min 5 s`. */
export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Return `count` with its noun: `1 process`, `2 processes`. */
export function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** Return a number with its thousands apart. */
export function number(value) {
  return Number(value).toLocaleString("en-US");
}

/** Return how long ago a time (seconds since 1970) was, in words. */
export function ago(then, now = Date.now() / 1000) {
  const seconds = Math.max(0, now - then);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 7 * 86400) return counted(Math.floor(seconds / 86400), "day") + " ago";
  return new Date(then * 1000).toISOString().slice(0, 10);
}

function escaped(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}
