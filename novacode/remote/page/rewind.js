// Putting files back: first what would be done, then exactly that.

import { el, refill } from "./dom.js";
import { counted, visible } from "./text.js";

const VERDICTS = {
  restore: "is put back",
  same: "is as it was already",
  conflict: "was changed by somebody else since, and stays",
  unkept: "was not kept, and stays",
};
const MOST_PATHS = 500;

export class Rewind {
  /** `dialog` is the element; `ask(message)` sends one and returns what answers it. */
  constructor(dialog, ask) {
    this.dialog = dialog;
    this.ask = ask;
    this.title = el("h2", { text: "Rewind files", id: "rewind-title" });
    this.body = el("div", { class: "sheet", tabindex: "0", role: "region", "aria-labelledby": "rewind-title" });
    this.buttons = el("div", { class: "buttons" });
    dialog.append(this.title, this.body, this.buttons);
  }

  /** Show what putting files back to before `to` would do: `{run}`, or `{undo: true}`. */
  async preview(to, force = false) {
    this.to = to;
    this.#say("Looking at what has changed …");
    if (!this.dialog.open) this.dialog.showModal();
    try {
      this.#draw(await this.ask({ type: "rewind", ...to, ...(force && { force }) }), force);
    } catch (error) {
      this.#say(error.message);
    }
  }

  #draw(found, force) {
    const chosen = found.items.filter((item) => item.chosen);
    const left = found.items.filter((item) => !item.chosen && item.verdict !== "same");
    const refusals = found.refusals ?? [];
    refill(
      this.body,
      el("p", { text: visible(`Files as they were ${found.title}.`) }),
      ...refusals.map((text) => el("p", { class: "notice warning", text: visible(text) })),
      chosen.length ? paths("Put back", chosen) : el("p", { text: "There is nothing to put back." }),
      left.length ? paths("Left as it is", left) : null,
      el("p", { class: "soft", text: "What is there now is kept first, so this can be taken back. The conversation is not shortened." }),
    );
    const more = [];
    if (chosen.length && (!refusals.length || force)) more.push(this.#button(`Put back ${counted(chosen.length, "path")}`, force ? "danger" : "primary", () => this.#go(found, force)));
    if (!force && (refusals.length || left.some((item) => item.verdict === "conflict"))) more.push(this.#button("Overwrite these too …", "plain", () => this.preview(this.to, true)));
    this.#choices(...more);
  }

  async #go(found, force) {
    this.#say("Putting files back …");
    try {
      const done = await this.ask({ type: "rewind", ...this.to, preview: found.preview, ...(force && { force }) });
      const failed = Object.entries(done.failed ?? {});
      refill(
        this.body,
        el("p", { text: `${counted(done.done.length, "path")} put back.` }),
        ...failed.map(([path, why]) => el("p", { class: "notice warning" }, el("code", { text: visible(path) }), ` stays: ${visible(String(why))}`)),
      );
      this.#choices(this.#button("Take this back", "plain", () => this.preview({ undo: true })));
    } catch (error) {
      this.#say(error.message);
      if (error.answer?.code === "stale_preview") this.#choices(this.#button("Look again", "primary", () => this.preview(this.to, force)));
    }
  }

  #say(words) {
    refill(this.body, el("p", { role: "status", text: visible(words) }));
    this.#choices();
  }

  #choices(...buttons) {
    refill(this.buttons, this.#button("Close", "plain", () => this.dialog.close()), ...buttons);
  }

  #button(text, kind, click) {
    return el("button", { type: "button", class: kind, text, on: { click } });
  }
}

function paths(title, items) {
  const rows = items.slice(0, MOST_PATHS).map((item) => {
    const goes = item.chosen && item.target === "absent" ? "is removed: it was not there" : item.chosen ? VERDICTS.restore : VERDICTS[item.verdict] ?? item.verdict;
    return el("li", {}, el("code", { text: visible(item.path) }), ` ${visible(item.why || goes)}`);
  });
  if (items.length > MOST_PATHS) rows.push(el("li", { text: `and ${items.length - MOST_PATHS} more` }));
  return el("section", {}, el("h3", { text: `${title} (${items.length})` }), el("ul", { class: "files" }, ...rows));
}
