// The page: takes what the server says in order, keeps the picture of one session, and draws it once a frame.

import { Approvals } from "./approvals.js";
import { Composer } from "./composer.js";
import { Feed } from "./feed.js";
import { Conversation } from "./fold.js";
import { LanesPanel } from "./lanes_panel.js";
import { Link } from "./link.js";
import { TAKERS, concerns } from "./messages.js";
import { Rewind } from "./rewind.js";
import { Sessions } from "./sessions.js";
import { MODES, Settings } from "./settings.js";
import { Shell } from "./shell.js";
import { oneLine, visible } from "./text.js";

const BUDGET = 8; // milliseconds a frame for taking events; the rest of it is for drawing and typing
const EPOCH_LIKE = 1e9; // stamps below this are of a run's own clock

class App {
  constructor() {
    const byId = (id) => document.getElementById(id);
    this.shell = new Shell({ newSession: () => this.begin(), lanes: () => this.lanes.toggle(), settings: () => this.settings.show(this.state, this.modes) });
    this.feed = new Feed(byId("scroller"), {
      clock: () => this.clock(),
      rewind: (run) => this.rewind.preview({ run }),
      stopCall: (item) => this.stopCall(item),
    });
    this.approvals = new Approvals(byId("questions"), {
      answer: ({ id, runId }, response, more) => this.link.ask({ type: "permission_response", id, runId, response, ...more }),
      tell: (words) => this.shell.toast(words),
      mayFocus: () => !this.composer.busy && !document.querySelector("dialog[open]") && !this.approvals.node.contains(document.activeElement),
      moved: () => this.feed.following && this.feed.toEnd(),
    });
    this.composer = new Composer(byId("foot"), {
      send: (text) => this.prompt(text),
      stop: (hurry) => this.stop(hurry),
      tell: (words) => this.shell.toast(words),
      clock: () => this.clock(),
    });
    this.sessions = new Sessions(byId("sessions"), (id) => this.watch(id));
    this.rewind = new Rewind(byId("rewind"), (message) => this.link.ask(message));
    this.settings = new Settings(byId("settings"), (message) => this.link.ask(message));
    this.lanes = new LanesPanel(byId("lanes"), byId("lanes-button"), () => this.clock());
    this.link = new Link({ take: (message) => this.queue(message), changed: (state) => this.connection(state), hello: () => this.hello() });
    this.wanted = sessionInAddress();
    this.modes = Object.keys(MODES);
    this.server = "";
    this.pending = [];
    this.reset("");
    this.every();
  }

  start() {
    addEventListener("hashchange", () => {
      const id = sessionInAddress();
      if (id && id !== this.session) this.watch(id);
    });
    document.addEventListener("visibilitychange", () => document.hidden && this.scheduled && this.schedule());
    setInterval(() => this.every(), 500);
    this.link.start();
  }

  // --- which session ------------------------------------------------------------------------------------------

  /** Watch `session` from here on, with nothing known of it. */
  reset(session) {
    this.session = session;
    this.state = { mode: "default", limits: {}, run: null };
    this.approvals.clear();
    this.composer.update({ run: null, stopping: null, locked: "", turn: 0, asking: false });
    this.sessions.mark(session);
    this.forget();
  }

  /** Forget the events. Questions stay: the list that follows says which of them are still open. */
  forget() {
    this.conversation = new Conversation();
    this.syncing = false;
    this.stamped = { at: 0, seen: 0 };
    this.feed.clear();
    this.lanes.show(this.conversation);
  }

  hello() {
    const mine = this.session || this.wanted || "latest";
    const known = this.session ? { lastSeq: this.conversation.lastSeq, server: this.server } : {};
    return { type: "hello", version: 1, session: mine, name: browserName(), ...known };
  }

  watch(session) {
    this.shell.closeDrawer();
    if (session === this.session) return;
    if (!this.link.send({ type: "open", session })) {
      this.shell.toast("There is no connection to NovaCode just now.");
      return;
    }
    this.adopt(session);
  }

  adopt(session) {
    if (session === this.session) return;
    const first = !this.session;
    this.reset(session);
    const address = `#${encodeURIComponent(session)}`;
    if (location.hash !== address) history[first ? "replaceState" : "pushState"](null, "", address);
    this.shell.session({ title: "", facts: "", empty: false });
  }

  // --- what a person does -------------------------------------------------------------------------------------

  async begin() {
    this.shell.closeDrawer();
    await this.attempt({ type: "new" });
    this.composer.text.focus();
  }

  async prompt(text) {
    this.feed.toEnd();
    return this.attempt({ type: "prompt", text, ...(this.session && { session: this.session }) });
  }

  async stop(hurry) {
    const runId = this.state.run?.runId;
    if (runId) await this.attempt({ type: "cancel", runId, ...(hurry && { hurry }) });
  }

  async stopCall(item) {
    await this.attempt({ type: "cancel", runId: item.runId, callId: item.id });
  }

  /** Send and wait for what comes of it; what went wrong is told. Returns whether it had its effect. */
  async attempt(message) {
    try {
      const answer = await this.link.ask(message);
      if (answer.type === "ignored") this.shell.toast(answer.text);
      return answer.type !== "ignored";
    } catch (error) {
      this.shell.toast(error.message, true);
      return false;
    }
  }

  // --- what the server says -----------------------------------------------------------------------------------

  queue(message) {
    if (message.type === "events") for (const event of message.events) this.pending.push({ type: "event", session: message.session, event });
    else this.pending.push(message);
    if (!this.scheduled) this.schedule();
  }

  schedule() {
    this.scheduled = true;
    // A page that is not looked at gets no frames, and still has to keep up: its title tells of questions.
    if (document.hidden) setTimeout(() => this.frame(), 100);
    else requestAnimationFrame(() => this.frame());
  }

  frame() {
    this.scheduled = false;
    const until = performance.now() + BUDGET;
    let taken = 0;
    while (taken < this.pending.length && (taken % 32 !== 0 || performance.now() < until)) {
      this.take(this.pending[taken]);
      taken += 1;
    }
    this.pending.splice(0, taken);
    if (this.pending.length) this.schedule();
    // While a long past comes in, only its end is worth drawing.
    if (!(this.syncing && this.pending.length)) this.draw();
  }

  draw() {
    const { conversation } = this;
    const { heard } = conversation;
    if (heard.length) this.shell.say(heard.slice(-3).join(". "));
    conversation.heard = [];
    if (conversation.changed.size || conversation.removed.size) {
      this.feed.draw(conversation);
      this.lanes.touch();
    }
    const run = conversation.runs.get(this.state.run?.runId);
    this.composer.update({ turn: run?.turn ?? 0, began: run?.began, asking: this.approvals.open.size > 0 });
    this.shell.empty(!conversation.items.length && !this.syncing, this.simulate);
  }

  take(message) {
    if (concerns(message, this.session)) TAKERS[message.type]?.call(this, message);
  }

  event(event) {
    if (event.seq <= this.conversation.lastSeq) return;
    if (event.type === "approval_closed") this.approvals.heard(event);
    this.conversation.take(event);
    this.stamped = { at: event.at, seen: performance.now() / 1000 };
    if (this.syncing) this.conversation.heard = [];
  }

  /** The time by the clock of the stamps. */
  clock() {
    const { at, seen } = this.stamped;
    return at > EPOCH_LIKE ? Math.max(at, Date.now() / 1000) : at + performance.now() / 1000 - seen;
  }

  connection(state) {
    this.connected = state === "open";
    // After a break nothing can be answered before the list of what is still open has come.
    if (!this.connected) this.approvals.connect(false);
    this.composer.update({ connected: this.connected });
    this.shell.connection(state, this.link);
    if (state === "waiting" || state === "ended") this.pending = this.pending.filter((message) => message.type !== "approvals");
  }

  every() {
    this.feed.tick();
    this.composer.tick();
    this.lanes.tick();
    if (this.link?.state === "waiting") this.shell.connection("waiting", this.link);
    if (this.connected && !document.hidden && performance.now() - (this.listed ?? -Infinity) > 5_000) this.list();
  }

  list() {
    this.listed = performance.now();
    this.link.send({ type: "sessions" });
  }

  showState() {
    const { state } = this;
    const { run } = state;
    const stopping = run?.stopping && typeof run.stopping === "object" && !Array.isArray(run.stopping) ? run.stopping : run?.stopping ? { waitingFor: [].concat(run.stopping) } : null;
    this.composer.update({ run, stopping: run ? (stopping ?? (this.composer.stopping?.runId === run.runId ? this.composer.stopping : null)) : null, locked: state.locked || "" });
    const [mode] = MODES[state.mode] ?? [oneLine(state.mode, 20)];
    const limited = Object.values(state.limits ?? {}).some((limit) => limit !== null);
    this.shell.session({
      title: state.title ? oneLine(state.title, 120) : "New session",
      facts: [state.model, state.cwd, typeof state.costUsd === "number" && state.costUsd > 0 ? `$${state.costUsd.toFixed(4)}` : "", state.watchers > 1 ? `${state.watchers} watching` : ""].filter(Boolean).join(" · "),
      mode: `${mode}${limited ? " · limits" : ""}`,
      risky: state.mode === "bypass",
      running: Boolean(run),
      questions: this.approvals.open.size,
    });
    this.shell.banner("locked", state.locked ? `This session is held by ${visible(String(state.locked))}. It can be read here, and nothing else.` : "");
    this.shell.banner("notices", (state.notices ?? []).map((text) => visible(String(text))).join(" "));
  }
}

function sessionInAddress() {
  const id = decodeURIComponent(location.hash.slice(1));
  return /^[A-Za-z0-9._-]{1,200}$/.test(id) ? id : "";
}

function browserName() {
  const agent = navigator.userAgent;
  const browser = /Edg\//.test(agent) ? "Edge" : /Firefox\//.test(agent) ? "Firefox" : /Chrom(e|ium)\//.test(agent) ? "Chrome" : /Safari\//.test(agent) ? "Safari" : "Browser";
  const system = /Android/.test(agent) ? "Android" : /iPhone|iPad/.test(agent) ? "iOS" : /Windows/.test(agent) ? "Windows" : /Mac OS/.test(agent) ? "macOS" : /Linux/.test(agent) ? "Linux" : "";
  return system ? `${browser} on ${system}` : browser;
}

// A token that the page was opened with once more: this browser is known already, so it goes before anything else.
if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname);

new App().start();
