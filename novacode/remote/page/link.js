// The connection to the server: one WebSocket, made again whenever it is lost. Knows the wire and nothing of the page.

const FIRST_DELAY = 500; // milliseconds; doubled at each failure
const LONGEST_DELAY = 15_000;
const PING_EVERY = 20_000;
const SILENT_FOR = 50_000; // as long as two pings and some more: a server that says nothing is gone
const ANSWER_WITHIN = 30_000;
const ANSWERS = new Set(["receipt", "ignored", "error", "pong", "sessions", "session_created", "rewind_preview", "rewound", "state"]);

/** A request that had no effect; `message` is for people, `answer` is what the server said, where it said something. */
export class Refused extends Error {
  constructor(text, answer = null) {
    super(text);
    this.answer = answer;
  }
}

export class Link {
  /** `take(message)` gets what the server says, `changed(state)` how the connection is, `hello()` returns the greeting. */
  constructor({ take, changed, hello }) {
    this.take = take;
    this.changed = changed;
    this.hello = hello;
    this.state = "connecting"; // connecting, greeting, open, waiting, ended
    this.failures = 0;
    this.retryAt = 0;
    this.socket = null;
    this.waiting = new Map(); // ref to {type, resolve, reject, timer}
    this.refs = 0;
    this.heard = 0;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
    setInterval(() => this.#beat(), 5_000);
  }

  start() {
    this.#set("connecting");
    const address = new URL("/ws", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    const socket = (this.socket = new WebSocket(address));
    socket.addEventListener("open", () => {
      if (socket !== this.socket) return;
      this.heard = performance.now();
      this.#set("greeting");
      this.greet();
    });
    socket.addEventListener("message", (event) => {
      if (socket === this.socket) this.#received(event.data);
    });
    socket.addEventListener("close", () => {
      if (socket === this.socket) this.#lost();
    });
  }

  /** Send the greeting: at first, and again where the server knows nothing of what the last one wished to watch. */
  greet() {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(this.hello()));
  }

  /** Send a message, without waiting for what comes of it. Returns whether it could be sent. */
  send(message) {
    if (this.state !== "open" || this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Send a message and return what answers it. Rejects with `Refused` for an error, and where the connection is lost. */
  ask(message) {
    const ref = `p${(this.refs += 1)}`;
    return new Promise((resolve, reject) => {
      if (!this.send({ ...message, ref })) {
        reject(new Refused("There is no connection to NovaCode just now."));
        return;
      }
      const timer = setTimeout(() => {
        this.waiting.delete(ref);
        reject(new Refused("NovaCode has not answered."));
      }, ANSWER_WITHIN);
      this.waiting.set(ref, { type: message.type, resolve, reject, timer });
    });
  }

  /** Try again now, where a wait was under way. */
  hurry() {
    if (this.state === "waiting") {
      clearTimeout(this.timer);
      this.start();
    }
  }

  #received(data) {
    this.heard = performance.now();
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return; // no text of this server; the next one may be
    }
    if (message.type === "hello") {
      this.failures = 0;
      this.take(message);
      this.#set("open");
      return;
    }
    const waiter = ANSWERS.has(message.type) && this.waiting.get(message.ref);
    // A prompt that begins a session is answered by its receipt, not by the news of the session.
    if (waiter && (message.type !== "session_created" || waiter.type === "new")) {
      this.waiting.delete(message.ref);
      clearTimeout(waiter.timer);
      if (message.type === "error") waiter.reject(new Refused(message.text, message));
      else waiter.resolve(message);
      if (message.type === "error") return;
    }
    this.take(message);
  }

  async #lost() {
    this.socket = null;
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      reject(new Refused("The connection was lost before NovaCode answered; what it did is shown as soon as it is back."));
    }
    this.waiting.clear();
    if (this.state === "ended") return;
    this.failures += 1;
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** (this.failures - 1)) * (0.75 + Math.random() / 2);
    this.retryAt = performance.now() + delay;
    this.#set("waiting");
    this.timer = setTimeout(() => this.start(), delay);
    if (await refused()) {
      clearTimeout(this.timer);
      this.#set("ended");
      location.reload(); // what comes is the page that takes a token
    }
  }

  #beat() {
    if (this.state !== "open" && this.state !== "greeting") return;
    const silent = performance.now() - this.heard;
    if (silent > SILENT_FOR) {
      const { socket } = this;
      this.#lost();
      socket.close();
    } else if (silent > PING_EVERY) this.send({ type: "ping" });
  }

  #set(state) {
    this.state = state;
    this.changed(state);
  }
}

/** Whether the server is there and does not know this browser any more. */
async function refused() {
  try {
    return (await fetch("/api/v1/state", { cache: "no-store" })).status === 401;
  } catch {
    return false;
  }
}
