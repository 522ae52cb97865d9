"""The recorded streams, where they are at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_FOLDER = Path(os.environ.get("NOVACODE_STREAMS", Path(__file__).resolve().parents[3] / "shared" / "streams"))
_PROTOCOLS = {
    "anthropic": "anthropic",
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
    "gemini": "gemini",
    "ollama": "ollama",
}


class Recorded:
    def __init__(self, path):
        self.name = f"{path.parent.name}/{path.stem}"
        self.protocol = _PROTOCOLS[path.parent.name]
        self.body = path.read_bytes()
        self.expected = json.loads(path.with_suffix(".expected.json").read_text("utf-8"))


def recorded():
    """Return a parameter for every recorded stream, or one that skips with the reason."""
    paths = sorted(path for suffix in ("sse", "ndjson") for path in _FOLDER.glob(f"*/*.{suffix}"))
    if not paths:
        reason = f"no recorded streams in {_FOLDER}; set NOVACODE_STREAMS"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="none")]
    return [pytest.param(stream, id=stream.name) for stream in map(Recorded, paths)]
