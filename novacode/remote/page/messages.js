// What the page does with each message that the server sends. docs/remote.md says what they mean.

import { briefly } from "./approvals.js";
import { visible } from "./text.js";

const ANY_SESSION = new Set(["hello", "sessions", "session_created", "receipt", "error"]);

/** Whether a message is about the session that is watched, or about all of them. */
export function concerns(message, session) {
  return !message.session || !session || message.session === session || ANY_SESSION.has(message.type);
}

/** What the page does with each message of the server; called with the page as `this`. */
export const TAKERS = {
  hello(message) {
    const again = this.server && this.server !== message.server;
    this.server = message.server;
    this.modes = message.modes ?? this.modes;
    this.simulate = this.approvals.keep = Boolean(message.simulate);
    this.shell.banner("simulate", message.simulate ? "Simulation: a model of a folder in memory. Nothing real is run or written." : "");
    this.shell.banner("closing", "");
    this.shell.client(message.client);
    if (again) this.shell.toast("NovaCode was started again. What was under way then is over.");
    if (message.session) this.adopt(message.session);
    this.list();
  },
  sync(message) {
    if (!this.session) this.adopt(message.session);
    if (message.reset && this.conversation.lastSeq) this.forget();
    this.syncing = true;
    this.approvals.connect(false);
    this.shell.banner("syncing", "Catching up …");
  },
  synced() {
    this.syncing = false;
    this.shell.banner("syncing", "");
    this.shell.banner("lagging", "");
  },
  event(message) {
    this.event(message.event);
  },
  state(message) {
    const { run: before } = this.state;
    this.state = message;
    if (message.run?.runId !== before?.runId) {
      this.composer.update({ stopping: null });
      this.list();
    }
    this.showState();
  },
  approvals(message) {
    this.approvals.connect(this.connected);
    const fresh = this.approvals.show(message.items);
    if (fresh.length) this.shell.urge(`A question: allow ${fresh.map((item) => briefly(item, 100)).join("; ")}?`);
    if (this.state.cwd !== undefined) this.showState();
  },
  stopping(message) {
    if (message.runId === this.state.run?.runId) this.composer.update({ stopping: message });
  },
  sessions(message) {
    this.sessions.show(message.items);
  },
  session_created(message) {
    this.adopt(message.session);
    this.list();
  },
  lagging(message) {
    this.shell.banner("lagging", `This page was too slow: ${message.missed} events were left out for it, and are being fetched again.`);
  },
  error(message) {
    if (message.code === "no_session" && (this.wanted || this.session)) {
      this.wanted = ""; // it is not there, or not any more: the latest will do
      this.reset("");
      history.replaceState(null, "", location.pathname);
      this.link.greet();
    }
    this.shell.toast(message.text, true);
  },
  closing(message) {
    const what = message.finish ? "NovaCode ends when the runs under way are over. No new one starts." : "NovaCode is ending; runs are being stopped.";
    this.shell.banner("closing", `${what} (${visible(String(message.reason))})`);
  },
};
