// The frame of the page: title, connection, banners, short messages, and what is read aloud.

import { el, icon, refill } from "./dom.js";
import { counted, visible } from "./text.js";

const TOAST_FOR = 8000; // milliseconds
const MOST_TOASTS = 3;

export class Shell {
  constructor({ newSession, lanes, settings }) {
    const byId = (id) => document.getElementById(id);
    this.title = byId("title");
    this.facts = byId("facts");
    this.mode = byId("mode");
    this.toasts = byId("toasts");
    this.banners = byId("banners");
    this.polite = byId("polite");
    this.urgent = byId("urgent");
    this.scroller = byId("scroller");
    this.menu = byId("menu");
    this.shown = new Map();
    this.name = "";
    refill(byId("new"), icon("plus"), "New session");
    refill(this.menu, icon("menu"));
    refill(byId("lanes-button"), icon("lanes"));
    byId("new").addEventListener("click", newSession);
    byId("lanes-button").addEventListener("click", lanes);
    this.mode.addEventListener("click", settings);
    this.menu.addEventListener("click", () => this.#drawer(!document.body.classList.contains("drawer")));
    byId("shade").addEventListener("click", () => this.closeDrawer());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && document.body.classList.contains("drawer")) this.closeDrawer();
    });
  }

  /** Show which session is watched, and how it stands. */
  session({ title, facts, mode, risky, running, questions }) {
    this.title.textContent = title || "NovaCode";
    this.facts.textContent = visible(facts || "", true);
    this.mode.hidden = !mode;
    if (mode) {
      this.mode.textContent = mode;
      this.mode.setAttribute("aria-label", `${mode}: permissions and limits`);
    }
    this.mode.classList.toggle("risky", Boolean(risky));
    const mark = questions ? `(${questions}) ` : running ? "● " : "";
    document.title = `${mark}${title || "NovaCode"}`;
  }

  /** Say what can be done where nothing was yet. */
  empty(empty, simulate) {
    if (empty && !this.welcome) {
      const hint = simulate ? "This is a simulation: try a prompt, stop the run, answer a question too late." : "Write what is to be done. What changes something is asked about first.";
      this.welcome = el("div", { class: "welcome" }, el("img", { src: "/assets/icon.svg", alt: "", width: 44, height: 44 }), el("p", { class: "big", text: "A new session" }), el("p", { class: "soft", text: hint }));
      this.scroller.prepend(this.welcome);
    } else if (!empty && this.welcome) {
      this.welcome.remove();
      this.welcome = null;
    }
  }

  /** Show how the connection is; nothing while all is well. */
  connection(state, link) {
    document.body.dataset.connection = state;
    if (state === "open") {
      if (this.lost) this.say("Connected again.");
      this.lost = false;
      this.banner("connection", "");
    } else if (state === "waiting") {
      this.lost = true;
      const seconds = Math.max(0, Math.ceil((link.retryAt - performance.now()) / 1000));
      this.banner("connection", `No connection. Trying again ${seconds ? `in ${seconds} s` : "now"} …`, () => link.hurry());
    } else if (this.lost) this.banner("connection", "No connection. Trying again now …");
  }

  /** Show a line above the conversation until it is taken away by an empty text. `retry` gives it a button. */
  banner(key, text, retry) {
    let node = this.shown.get(key);
    if (!text) {
      node?.remove();
      this.shown.delete(key);
      return;
    }
    if (!node) {
      node = el("p", { class: `banner ${key}`, role: key === "connection" || key === "closing" ? "alert" : "status" }, el("span"));
      if (retry) node.append(el("button", { type: "button", class: "quiet", text: "Try now", on: { click: retry } }));
      this.shown.set(key, node);
      this.banners.append(node);
    }
    // The seconds of a countdown are drawn and not read aloud again.
    if (node.firstChild.textContent !== text) node.firstChild.textContent = text;
    const button = node.querySelector("button");
    if (button) button.hidden = !retry;
  }

  /** Show a short message for some seconds. */
  toast(text, bad = false) {
    const close = el("button", { type: "button", class: "bare", "aria-label": "Dismiss" }, icon("close"));
    const node = el("div", { class: bad ? "toast bad" : "toast" }, el("p", { text: visible(text) }), close);
    close.addEventListener("click", () => node.remove());
    while (this.toasts.childNodes.length >= MOST_TOASTS) this.toasts.firstChild.remove();
    this.toasts.append(node);
    setTimeout(() => node.matches(":hover, :focus-within") || node.remove(), TOAST_FOR);
  }

  /** Have something read aloud when there is a pause. */
  say(text) {
    this.polite.textContent = visible(text);
  }

  /** Have something read aloud at once. */
  urge(text) {
    this.urgent.textContent = visible(text);
  }

  /** Remember the name that others know this browser by. */
  client(name) {
    this.name = name;
    this.title.parentElement.title = name ? visible(`This browser is ${name}`) : "";
  }

  closeDrawer() {
    if (document.body.classList.contains("drawer")) this.#drawer(false);
  }

  #drawer(open) {
    document.body.classList.toggle("drawer", open);
    this.menu.setAttribute("aria-expanded", String(open));
    if (open) document.getElementById("new").focus();
    else this.menu.focus();
  }
}
