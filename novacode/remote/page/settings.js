// What the next run may do: the permission mode and the limits.

import { el, refill } from "./dom.js";
import { visible } from "./text.js";

export const MODES = {
  default: ["Ask", "asks before anything that changes something"],
  "accept-edits": ["Accept edits", "edits in the folder without asking; asks for the rest"],
  plan: ["Plan", "reads only; changes nothing"],
  bypass: ["Bypass", "asks nothing; every call runs that no rule denies"],
};
const LIMITS = [
  ["maxTurns", "Turns", 1],
  ["maxSeconds", "Seconds", 1],
  ["maxOutputTokens", "Output tokens", 1],
  ["maxBudgetUsd", "US dollars", "any"],
];

export class Settings {
  /** `dialog` is the element; `ask(message)` sends one, and rejects where it was refused. */
  constructor(dialog, ask) {
    this.dialog = dialog;
    this.ask = ask;
  }

  /** Show the settings of the session as `state` has them; `modes` are those there are. */
  show(state, modes) {
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const choices = modes.map((mode) => {
      const [name, words] = MODES[mode] ?? [mode, ""];
      const input = el("input", { type: "radio", name: "mode", value: mode });
      input.checked = mode === state.mode;
      return el("label", { class: mode === "bypass" ? "choice risky" : "choice" }, input, el("span", {}, el("b", { text: name }), words ? ` ${words}` : ""));
    });
    const fields = LIMITS.map(([key, name, step]) => {
      const input = el("input", { type: "number", min: 0, step, name: key, placeholder: "no limit", inputmode: "decimal" });
      input.value = state.limits?.[key] ?? "";
      return el("label", { class: "field" }, el("span", { text: name }), input);
    });
    const attempt = async (message) => {
      try {
        await this.ask(message);
        this.dialog.close();
      } catch (error) {
        problem.textContent = visible(error.message);
        problem.hidden = false;
      }
    };
    const shorten = el("button", { type: "button", class: "quiet", text: "Shorten the conversation", disabled: Boolean(state.run) || !state.session, on: { click: () => attempt({ type: "compact" }) } });
    shorten.title = "Has the model sum up what was said, so that more fits; what is left out stays on record";
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", { text: "Permissions and limits", id: "settings-title" }),
      el("fieldset", {}, el("legend", { text: "Permission mode" }), ...choices),
      el("fieldset", { class: "limits" }, el("legend", { text: "Limits of the next run" }), ...fields),
      el("p", { class: "soft facts", text: visible([state.model && `Model ${state.model}`, state.cwd && `in ${state.cwd}`].filter(Boolean).join(" ")) }),
      problem,
      el("div", { class: "buttons" }, shorten, el("button", { type: "button", class: "plain", text: "Close", on: { click: () => this.dialog.close() } }), el("button", { type: "submit", class: "primary", text: "Save" })),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const data = new FormData(form);
      const limits = Object.fromEntries(LIMITS.map(([key]) => [key, data.get(key) === "" ? null : Number(data.get(key))]));
      attempt({ type: "settings", mode: data.get("mode") ?? state.mode, limits });
    });
    refill(this.dialog, form);
    this.dialog.showModal();
  }
}
