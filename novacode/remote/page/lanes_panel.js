// The panel with the time-line of a run: the last one, or another that was chosen.

import { el, icon, refill } from "./dom.js";
import { drawLanes } from "./lanes.js";
import { oneLine } from "./text.js";

export class LanesPanel {
  constructor(node, button, clock) {
    Object.assign(this, { node, button, clock });
    this.choice = el("select", { "aria-label": "Run" });
    this.choice.addEventListener("change", () => this.#draw());
    this.picture = el("div", { class: "picture", tabindex: "0", role: "region", "aria-label": "Lanes" });
    const close = el("button", { type: "button", class: "bare", "aria-label": "Close the time-line", on: { click: () => this.toggle() } }, icon("close"));
    node.append(el("header", {}, el("h2", { text: "Time-line" }), close), this.choice, this.picture);
  }

  show(conversation) {
    this.conversation = conversation;
    this.known = 0;
    this.choice.replaceChildren();
    this.touch();
  }

  toggle() {
    this.node.hidden = !this.node.hidden;
    this.button.setAttribute("aria-expanded", String(!this.node.hidden));
    document.body.classList.toggle("with-lanes", !this.node.hidden);
    if (this.node.hidden) this.button.focus();
    else {
      this.touch();
      this.tick();
      this.choice.focus();
    }
  }

  /** Something has happened; it is drawn at the next tick. */
  touch() {
    this.touched = true;
  }

  tick() {
    if (this.node.hidden || !this.conversation) return;
    const runs = [...this.conversation.runs.values()];
    if (runs.length !== this.known) {
      const last = this.choice.selectedIndex <= 0;
      this.known = runs.length;
      this.choice.replaceChildren(...runs.reverse().map((run, place) => el("option", { value: run.id, text: oneLine(`${runs.length - place}. ${run.prompt || run.id}`, 60) })));
      if (last) this.choice.selectedIndex = 0;
    }
    const run = this.conversation.runs.get(this.choice.value);
    if (this.touched || (run && !run.ended)) this.#draw();
  }

  #draw() {
    this.touched = false;
    const run = this.conversation.runs.get(this.choice.value);
    const open = this.picture.querySelector("details")?.open;
    this.choice.hidden = !run;
    refill(this.picture, ...(run ? drawLanes(run.lanes, this.clock()) : [el("p", { class: "soft", text: "No run yet." })]));
    if (open) this.picture.querySelector("details").open = true;
  }
}
