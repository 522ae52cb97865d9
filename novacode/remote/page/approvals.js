// The open questions of a run. What is shown is exactly what will run, and an answer names its question and its run.

import { argumentsView } from "./arguments.js";
import { diffView } from "./diff.js";
import { el, refill } from "./dom.js";
import { marked, oneLine, visible } from "./text.js";

const UNTOUCHABLE_FOR = 400; // milliseconds: a click that was meant for what stood there before

export class Approvals {
  /**
   * `node` holds the questions. `answer(question, response, more)` sends one and rejects where it had no effect;
   * `tell(words)` tells a person something; `mayFocus()` is whether the keyboard is free; `moved()`: more or less room is taken.
   */
  constructor(node, { answer, tell, mayFocus, moved }) {
    Object.assign(this, { node, answer, tell, mayFocus, moved });
    this.open = new Map(); // id to its view
    this.closed = new Map(); // id to how it was closed, as events tell
    this.old = new Set(); // views of questions that are closed, kept so that somebody can see what answering them does
    this.keep = false; // whether those are kept: where nothing real can come of it
    this.connected = false;
  }

  /** Show what is open now. What is not any more goes, with a word about it where somebody else decided. */
  show(items) {
    const ids = new Set(items.map((item) => item.id));
    for (const [id, view] of this.open) if (!ids.has(id)) this.#gone(id, view);
    const fresh = items.filter((item) => !this.open.has(item.id));
    for (const item of fresh) {
      const view = new QuestionView(item, (response, more) => this.#answer(view, response, more));
      view.enable(this.connected);
      this.open.set(item.id, view);
      this.node.append(view.node);
    }
    this.#hide();
    const count = this.open.size;
    for (const [place, view] of [...this.open.values()].entries()) view.count(place + 1, count);
    this.moved();
    if (fresh.length && this.mayFocus()) this.open.get(fresh[0].id).node.focus({ preventScroll: fresh.length < count });
    return fresh;
  }

  clear() {
    for (const view of [...this.open.values(), ...this.old]) view.node.remove();
    this.open.clear();
    this.old.clear();
    this.#hide();
  }

  /** Remember how a question was closed; `show` says so when it goes. */
  heard(event) {
    this.closed.set(event.approval_id, event);
  }

  /** Answers can be sent, or cannot. */
  connect(connected) {
    this.connected = connected;
    for (const view of [...this.open.values(), ...this.old]) view.enable(connected);
  }

  async #answer(view, response, more) {
    view.sent(response);
    try {
      const said = await this.answer(view.item, response, more);
      if (said.type === "ignored") this.tell(said.text || "This answer came too late; nothing was changed by it.");
      view.answered = said.type === "receipt";
      if (said.type === "ignored") this.old.has(view) ? this.#dismiss(view) : this.#gone(view.item.id, view, true);
    } catch (error) {
      view.failed(error.message);
    }
  }

  #gone(id, view, told = false) {
    if (!this.open.has(id)) return;
    const hadFocus = view.node.contains(document.activeElement);
    this.open.delete(id);
    const how = this.closed.get(id);
    if (this.keep && !told && !view.answered && how?.decision === "abandoned") {
      this.old.add(view);
      view.end(() => this.#dismiss(view));
      return;
    }
    view.node.remove();
    this.#hide();
    const what = briefly(view.item, 80);
    if (!told && !view.answered && !view.sending) {
      if (how && how.decision !== "abandoned") this.tell(`Answered: ${how.decision}, by ${oneLine(how.by, 60)} (${what}).`);
      else this.tell(`A question is no longer valid: ${what}. Nothing was allowed by it.`);
    }
    if (hadFocus) (this.open.values().next().value?.node ?? document.getElementById("prompt")).focus();
    this.moved();
  }

  #dismiss(view) {
    this.old.delete(view);
    view.node.remove();
    this.#hide();
    this.moved();
  }

  #hide() {
    this.node.hidden = !this.open.size && !this.old.size;
  }
}

class QuestionView {
  constructor(item, answer) {
    this.item = item;
    this.answer = answer;
    this.since = performance.now();
    this.ready = false;
    this.sending = false;
    this.answered = false;
    const title = `q-${item.id}`;
    this.place = el("span", { class: "soft place" });
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.words = el("input", { type: "text", maxlength: 2000, placeholder: "Why not?", title: "Goes to the model, with Deny", "aria-label": "Reason for the model, with Deny", autocomplete: "off" });
    this.words.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      this.#say("deny"); // of what an Enter could mean here, the one that changes nothing
    });
    this.rule = el("textarea", { rows: Math.min(6, item.rule.split("\n").length), spellcheck: "false", "aria-label": "Rule to keep, one a line" });
    this.rule.value = visible(item.rule);
    this.node = el(
      "section",
      { class: "question", tabindex: "-1", "aria-labelledby": title, "data-approval": item.id },
      el("header", {}, el("h2", { id: title }, "Allow ", el("b", {}, marked(item.call.name)), "?"), this.place),
      el("div", { class: "what", tabindex: "0", role: "region", "aria-label": "Exactly what will run" }, el("p", { class: "reason", text: visible(item.reason) }), ...what(item)),
      item.rule ? this.#rules() : el("p", { class: "soft norule", text: "No rule can cover this call, so it can only be allowed once." }),
      this.problem,
      el("div", { class: "answers" }, ...this.#buttons()),
    );
    setTimeout(() => {
      this.ready = true;
      this.#refresh();
    }, UNTOUCHABLE_FOR);
    this.#refresh();
  }

  count(place, of) {
    this.place.textContent = of > 1 ? `${place} of ${of}` : "";
  }

  enable(connected) {
    if (!connected) this.sending = false; // what became of it shows when the connection is back
    this.connected = connected;
    this.#refresh();
  }

  /** Mark the question as one that is not open any more. */
  end(dismiss) {
    this.node.classList.add("old");
    this.count(0, 0);
    this.problem.textContent = "No longer valid: its run is over. In a simulation it can be answered all the same, to see that nothing comes of it.";
    this.problem.hidden = false;
    this.node.querySelector("header").append(el("button", { type: "button", class: "quiet", text: "Dismiss", on: { click: dismiss } }));
  }

  sent(response) {
    this.sending = true;
    this.problem.hidden = true;
    for (const [name, button] of Object.entries(this.buttons)) button.classList.toggle("sent", name === response);
    this.#refresh();
  }

  failed(words) {
    this.sending = false;
    this.problem.textContent = visible(words);
    this.problem.hidden = false;
    this.#refresh();
  }

  #buttons() {
    const button = (name, text, kind) => el("button", { type: "button", class: kind, text, "data-response": name, on: { click: () => this.#say(name) } });
    this.buttons = { allow: button("allow", "Allow once", "primary"), deny: button("deny", "Deny", "danger") };
    if (this.item.rule) {
      this.buttons.allowSession = button("allowSession", "This session", "plain");
      this.buttons.allowAlways = button("allowAlways", "Always", "plain");
    }
    const { allow, allowSession, allowAlways, deny } = this.buttons;
    return [allow, allowSession, allowAlways, el("div", { class: "no" }, this.words, deny)];
  }

  #rules() {
    const { item } = this;
    const where = item.storedIn ? el("span", {}, ", in ", el("code", {}, marked(item.storedIn))) : "";
    const lines = item.rule.split("\n").map((line) => el("li", {}, el("code", {}, marked(line))));
    const edit = el("details", {}, el("summary", { text: "Change the rule" }), this.rule);
    return el("div", { class: "rule" }, el("p", {}, "“Always” stores this", where, "; “This session” keeps it until the session is closed:"), el("ul", {}, ...lines), edit);
  }

  #say(response) {
    if (!this.ready || this.sending || !this.connected) return;
    const more = {};
    if (response === "deny" && this.words.value.trim()) more.reason = this.words.value.trim();
    if ((response === "allowAlways" || response === "allowSession") && this.rule.value !== visible(this.item.rule)) more.rule = this.rule.value;
    this.answer(response, more);
  }

  #refresh() {
    const off = !this.ready || this.sending || !this.connected;
    for (const button of Object.values(this.buttons)) button.disabled = off;
    this.node.classList.toggle("offline", !this.connected);
    if (!this.connected) {
      this.problem.textContent = "Not connected. Whether this question is still open shows when the connection is back.";
      this.problem.hidden = false;
    } else if (this.problem.textContent.startsWith("Not connected.")) this.problem.hidden = true;
  }
}

/** Return a question in one line: the tool and what it is to do. */
export function briefly(item, width) {
  const { summary = "", call } = item;
  return oneLine(summary.startsWith(call.name) ? summary : `${call.name} ${summary}`, width);
}

/** Return what a person has to see to decide: all arguments, what a shell line comes to, what a file becomes. */
function what(item) {
  const made = [argumentsView(item.call.name, item.call.arguments)];
  if (item.diff) made.unshift(diffView(item.diff, true));
  if (item.diff) made[1] = el("details", {}, el("summary", { text: "All arguments" }), made[1]);
  const { commands = [] } = item;
  const alone = commands.length === 1 && commands[0] === item.call.arguments.command;
  if (commands.length && !alone) made.push(el("div", { class: "commands" }, el("p", { text: "This comes to:" }), el("ol", {}, ...commands.map((one) => el("li", {}, el("code", {}, marked(one)))))));
  if (item.details && !item.diff && !commands.length) made.push(el("pre", { class: "exact" }, marked(item.details)));
  return made;
}
