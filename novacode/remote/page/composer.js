// Where prompts are written and runs are stopped, and what a run is doing just now.

import { el, icon, refill } from "./dom.js";
import { counted, duration, oneLine, visible } from "./text.js";

const SURE_WITHIN = 3000; // milliseconds between the two presses of Esc that stop a run

export class Composer {
  /** `node` is the footer; `send(text)` returns whether it was taken, `stop(hurry)` stops the run, `tell` tells something. */
  constructor(node, { send, stop, tell, clock }) {
    Object.assign(this, { node, sendText: send, stopRun: stop, tell, clock });
    this.text = el("textarea", { id: "prompt", rows: 1, "aria-label": "Prompt", placeholder: "What is to be done?", maxlength: 300_000 });
    this.sendButton = el("button", { type: "submit", class: "round primary", "aria-label": "Send", title: "Send (Enter)" }, icon("send"));
    this.stopButton = el("button", { type: "button", class: "stop", hidden: true, on: { click: () => this.stop() } });
    this.status = el("div", { class: "status" });
    this.waiting = el("ul", { class: "left", hidden: true, "aria-label": "Still to end" });
    this.form = el("form", { class: "composer" }, this.text, this.sendButton, this.stopButton);
    this.bar = el("div", { class: "doing", hidden: true }, el("span", { class: "pulse", "aria-hidden": "true" }), this.status);
    node.append(this.bar, this.waiting, this.form);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.text.addEventListener("keydown", (event) => this.#key(event));
    this.text.addEventListener("input", () => {
      this.typed = performance.now();
      this.#grow();
      this.#refresh();
    });
    document.addEventListener("keydown", (event) => this.#escape(event));
    [this.connected, this.run, this.stopping, this.locked, this.typed, this.sending] = [false, null, null, "", -Infinity, false];
    this.#refresh();
  }

  /** Whether somebody is writing: then nothing takes the keyboard from them. */
  get busy() {
    return document.activeElement === this.text && (this.text.value !== "" || performance.now() - this.typed < 2000);
  }

  update(change) {
    if (Object.entries(change).every(([name, value]) => this[name] === value)) return;
    Object.assign(this, change);
    this.#refresh();
  }

  /** Stop the run; while it is being stopped, skip its graces. */
  stop() {
    if (!this.run) return;
    this.stopRun(Boolean(this.stopping));
    this.stopButton.classList.add("sent");
    if (!this.stopping) this.update({ stopping: { waitingFor: [], seconds: 0 } });
  }

  tick() {
    if (!this.run) return;
    const { stopping } = this;
    const left = stopping?.waitingFor?.length ?? 0;
    const waits = left ? `waits for ${counted(left, "process", "processes")}` : stopping?.reason ? oneLine(stopping.reason, 60) : "";
    const words = stopping ? [stopping.hurried ? "Stopping now" : "Stopping", waits] : [this.asking ? "Waits for your answer" : "Running", this.turn ? `turn ${this.turn}` : ""];
    const since = stopping ? stopping.seconds : this.clock() - this.began;
    const text = [...words, duration(since)].filter(Boolean).join(" · ");
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  #refresh() {
    const { run, stopping, connected, locked } = this;
    this.bar.hidden = !run;
    this.bar.classList.toggle("stopping", Boolean(stopping));
    const left = stopping?.waitingFor ?? [];
    this.waiting.hidden = !left.length;
    refill(this.waiting, ...left.slice(0, 8).map((one) => el("li", {}, el("code", { text: visible(one) }))), left.length > 8 && el("li", { text: `and ${left.length - 8} more` }));
    this.stopButton.hidden = !run;
    this.sendButton.hidden = Boolean(run);
    this.stopButton.disabled = !connected || Boolean(stopping?.hurried);
    const label = !stopping ? "Stop" : stopping.hurried ? "Stopping" : "Don’t wait";
    if (this.stopButton.textContent !== label) refill(this.stopButton, icon("stop"), label);
    this.stopButton.title = !stopping ? "Stop the run (Esc, twice)" : "Skip the time that processes are given to end by themselves";
    this.sendButton.disabled = !connected || this.sending || Boolean(locked) || !this.text.value.trim();
    this.text.placeholder = locked ? "This session is open elsewhere; it can be read here" : run ? "Next prompt" : "What is to be done?";
    this.tick();
  }

  async #send() {
    const text = this.text.value;
    if (!text.trim() || !this.connected || this.sending || this.locked) return;
    if (this.run) {
      this.tell("A run is under way. Wait until it is over, or stop it.");
      return;
    }
    this.update({ sending: true });
    const taken = await this.sendText(text);
    if (taken && this.text.value === text) this.text.value = "";
    this.#grow();
    this.update({ sending: false });
  }

  #key(event) {
    const touch = matchMedia("(pointer: coarse)").matches; // there Enter is the only way to a new line
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || touch) return;
    event.preventDefault();
    this.#send();
  }

  #escape(event) {
    if (event.key !== "Escape" || event.isComposing || !this.run || document.querySelector("dialog[open]")) return;
    if (document.body.classList.contains("drawer") || this.stopping) return;
    event.preventDefault();
    const now = performance.now();
    if (now - (this.sure ?? -Infinity) < SURE_WITHIN) {
      this.sure = undefined;
      this.stop();
    } else {
      this.sure = now;
      this.tell("Press Esc once more to stop the run.");
    }
  }

  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.text.rows = Math.min(8, this.text.value.split("\n").length);
  }
}
