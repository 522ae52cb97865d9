// The conversation as a list that stays quick however long it is: only its end is in the document, the rest on demand.

import { el } from "./dom.js";
import { counted } from "./text.js";
import { viewOf } from "./views.js";

const MOUNTED = 250; // items in the document while nobody looks at older ones
const STEP = 120; // how many older ones come at a time
const NEAR = 96; // pixels from the end that still count as being there

export class Feed {
  /** `node` scrolls; `actions` is what the buttons of items do. */
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.list = el("ol", { class: "feed" });
    this.earlier = el("button", { type: "button", class: "quiet earlier", hidden: true, on: { click: () => this.#more() } });
    this.latest = el("button", { type: "button", class: "latest", hidden: true, text: "Latest", on: { click: () => this.toEnd() } });
    node.append(this.earlier, this.list, this.latest);
    this.views = new Map();
    this.live = new Set(); // cards that count seconds
    this.items = [];
    this.first = 0; // index of the first item in the document
    this.mounted = 0; // how many of `items` were looked at
    this.following = true;
    node.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new IntersectionObserver(([seen]) => seen.isIntersecting && !this.earlier.hidden && !this.following && this.#more(), { root: node, rootMargin: "400px" }).observe(this.earlier);
  }

  clear() {
    this.views.clear();
    this.live.clear();
    this.list.replaceChildren();
    [this.items, this.first, this.mounted, this.following] = [[], 0, 0, true];
    this.earlier.hidden = this.latest.hidden = true;
  }

  /** Bring the document in line with `conversation`: what is new, what has changed, what is gone. */
  draw(conversation) {
    for (const item of conversation.removed) {
      if (item.looked) this.mounted -= 1;
      this.#drop(item);
    }
    this.items = conversation.items;
    // A long past is not built only to be taken away again.
    const start = this.following ? Math.max(this.mounted, this.items.length - MOUNTED) : this.mounted;
    if (start > this.mounted && this.following) this.#unmountBefore(start);
    const fresh = document.createDocumentFragment();
    for (let at = start; at < this.items.length; at += 1) fresh.append(this.#mount(this.items[at]));
    if (fresh.childNodes.length) this.list.append(fresh);
    for (let at = this.mounted; at < this.items.length; at += 1) this.items[at].looked = true;
    this.mounted = this.items.length;
    for (const item of conversation.changed) {
      const view = this.views.get(item);
      if (!view) continue;
      view.update();
      this.#watch(view);
    }
    conversation.changed.clear();
    conversation.removed.clear();
    if (this.following && this.list.childNodes.length > MOUNTED + STEP) this.#unmountBefore(this.items.length - MOUNTED);
    this.#tell();
    if (this.following) this.node.scrollTop = this.node.scrollHeight;
  }

  /** Let cards that count seconds do so. */
  tick() {
    for (const view of this.live) if (!view.tick()) this.live.delete(view);
  }

  toEnd() {
    this.following = true;
    this.latest.hidden = true;
    this.node.scrollTop = this.node.scrollHeight;
  }

  /** Show the card of a call. */
  reveal(item) {
    const view = this.views.get(item);
    if (view) view.node.scrollIntoView({ block: "center" });
  }

  #mount(item) {
    const view = viewOf(item, this.actions);
    this.views.set(item, view);
    this.#watch(view);
    view.row = el("li", { class: "item", "data-kind": item.kind }, view.node);
    return view.row;
  }

  #watch(view) {
    if (view.tick?.()) this.live.add(view);
  }

  #drop(item) {
    const view = this.views.get(item);
    view?.row.remove();
    this.views.delete(item);
    this.live.delete(view);
  }

  #unmountBefore(index) {
    for (let at = this.first; at < index; at += 1) this.#drop(this.items[at]);
    this.first = Math.max(this.first, index);
  }

  #more() {
    const from = Math.max(0, this.first - STEP);
    const before = this.node.scrollHeight - this.node.scrollTop;
    const older = document.createDocumentFragment();
    for (let at = from; at < this.first; at += 1) older.append(this.#mount(this.items[at]));
    this.list.prepend(older);
    this.first = from;
    this.#tell();
    this.node.scrollTop = this.node.scrollHeight - before; // what was looked at stays where it was
  }

  #tell() {
    this.earlier.hidden = this.first === 0;
    if (this.first) this.earlier.textContent = `Show earlier (${counted(this.first, "item")})`;
  }

  #scrolled() {
    const end = this.node.scrollHeight - this.node.clientHeight - this.node.scrollTop;
    this.following = end < NEAR;
    this.latest.hidden = end < this.node.clientHeight / 2; // where the end is in sight anyway, it would only be in the way
  }
}
