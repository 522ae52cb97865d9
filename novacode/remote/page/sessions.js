// The list of sessions beside the conversation.

import { el, refill } from "./dom.js";
import { ago, counted, oneLine, visible } from "./text.js";

export class Sessions {
  /** `open(id)` watches a session. */
  constructor(node, open) {
    this.node = node;
    this.open = open;
    this.items = [];
    this.current = "";
  }

  show(items) {
    this.items = items;
    this.#draw();
  }

  mark(current) {
    if (current === this.current) return;
    this.current = current;
    this.#draw();
  }

  #draw() {
    const focused = this.node.contains(document.activeElement) ? document.activeElement.dataset.session : "";
    refill(this.node, ...(this.items.length ? this.items.map((item) => this.#row(item)) : [el("li", { class: "soft empty", text: "No sessions in this folder yet." })]));
    if (focused) [...this.node.querySelectorAll("button")].find((button) => button.dataset.session === focused)?.focus({ preventScroll: true });
  }

  #row(item) {
    const current = item.session === this.current;
    const badges = [];
    if (item.approvals) badges.push(el("span", { class: "badge ask", text: counted(item.approvals, "question") }));
    else if (item.running) badges.push(el("span", { class: "badge run", text: "running" }));
    const title = item.title ? oneLine(item.title, 90) : "New session";
    const button = el(
      "button",
      { type: "button", "aria-current": current ? "true" : null, "data-session": item.session, title: visible(`${item.session}\n${item.cwd}`), on: { click: () => this.open(item.session) } },
      el("span", { class: "title", text: title }),
      el("span", { class: "facts" }, el("span", { text: ago(item.last) }), ...badges),
    );
    return el("li", {}, button);
  }
}
