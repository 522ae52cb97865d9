"""A server in a process of its own, without the library: `python -S -E mcp_fake_server.py '{"…": …}'`.

What it does wrong is told by one JSON object: `tools` (the list), `die_at` a method, `slow` seconds before `initialize`
is answered, `noise` lines first, `log` a file of what it receives, `stubborn` (neither EOF nor SIGTERM ends it).
"""

import json
import os
import signal
import sys
import time

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}


def say(message):
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words, **more):
    """Make a result of a call."""
    return {"content": [{"type": "text", "text": words}], **more}


def call(message, wish):
    """Answer a call, in the way its tool's name says."""
    number, name, given = message["id"], message["params"]["name"], message["params"]["arguments"]
    if name in ("hang", "late"):
        return
    if name == "close":
        os.close(1)
        time.sleep(600)
    elif name == "big":
        say({"id": number, "result": text("x" * given["n"])})
    elif name == "bad":
        say({"id": number, "result": text("it went wrong", isError=True)})
    elif name == "refuse":
        say({"id": number, "error": {"code": -32000, "message": "not today"}})
    elif name == "items":
        say({"id": number, "result": {"content": [{"type": "text", "text": str(i)} for i in range(5000)]}})
    elif name == "image":
        picture = {"type": "image", "mimeType": "image/png", "data": "QUJD" * given["n"]}
        say({"id": number, "result": {"content": [picture]}})
    elif name == "structured":
        say({"id": number, "result": {"content": [], "structuredContent": {"v": "x" * given["n"]}}})
    else:
        say({"id": number, "result": text(f"{name}: {given.get('x', '')}")})


def begin(wish):
    """Do what comes before the first message."""
    if wish.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "pid" in wish:
        with open(wish["pid"], "w") as file:
            file.write(str(os.getpid()))
    for line in wish.get("noise", ()):
        sys.stdout.write(line + "\n")
    sys.stdout.write("x" * wish.get("giant", 0) + "\n")
    sys.stdout.flush()


def receive(message, wish):
    """Answer a message, or do not."""
    method = message.get("method")
    if method == wish.get("die_at"):
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(1)
    if method == "initialize":
        time.sleep(wish.get("slow", 0))
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "fake", "version": "1"}}
        say({"id": message["id"], "result": {"protocolVersion": "2025-06-18", **about}})
    elif method == "tools/list":
        say({"id": message["id"], "result": {"tools": wish.get("tools", [TOOL])}})
    elif method == "tools/call":
        call(message, wish)
    elif method == "notifications/cancelled":
        number = message["params"]["requestId"]
        say({"id": number, "error": {"code": 1, "message": "late"}})
        say({"id": number, "result": text("later")})
        say({"id": 999, "result": text("of nobody")})


def main():
    """Serve until stdin ends."""
    wish = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    begin(wish)
    for line in sys.stdin:
        if "log" in wish:
            with open(wish["log"], "a") as log:
                log.write(line)
        receive(json.loads(line), wish)
    while wish.get("stubborn"):
        time.sleep(1)


main()
