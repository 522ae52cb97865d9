"""What keys look like, so that none gets onto a tape even where nobody has told us its value."""

from __future__ import annotations

import re

__all__ = ["find_keys", "hide_keys"]

_SHAPES: tuple[tuple[str, str], ...] = (
    ("Anthropic", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("OpenAI", r"\bsk-(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{20,}"),
    ("Google", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Groq", r"\bgsk_[A-Za-z0-9]{30,}"),
    ("xAI", r"\bxai-[A-Za-z0-9]{30,}"),
    ("Hugging Face", r"\bhf_[A-Za-z0-9]{30,}"),
    ("GitHub", r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{40,}"),
    ("GitLab", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("AWS", r"\bA(?:KI|SI)A[A-Z0-9]{16}\b"),
    ("Slack", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("bearer token", r"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{20,}=*"),
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----)?"),
)

_ALL = re.compile("|".join(f"(?P<k{number}>{shape})" for number, (_, shape) in enumerate(_SHAPES)))


def find_keys(text: str) -> tuple[str, ...]:
    """Return the kinds of what looks like a key in `text`, in order; never the keys themselves."""
    return tuple(_kind(found) for found in _ALL.finditer(text))


def hide_keys(text: str) -> str:
    """Return `text` with a word in the place of everything that looks like a key."""
    return _ALL.sub(lambda found: f"[{_kind(found)} removed]", text)


def _kind(found: re.Match[str]) -> str:
    assert found.lastgroup is not None  # every alternative has a name
    name = _SHAPES[int(found.lastgroup[1:])][0]
    return name if name.endswith(("key", "token")) else f"{name} key"
