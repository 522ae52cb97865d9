"""From what several hooks say about one call to one answer. Pure.

Hooks of one event run at the same time and do not see each other. Deny beats ask beats allow. Rewrites are put
together key by key in the order of the settings; two that want different values for one key refuse the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from novacode.authority.hook_wire import HookSaid
from novacode.authority.hooks import HookAnswer, HookWord
from novacode.values.parts import JSON, ToolCall

__all__ = ["View", "answer_of", "merged"]

_GONE = object()


@attrs.frozen
class View:
    """What one hook makes of a call: `call` is what it was shown, with the arguments it wants instead, if any."""

    command: str
    said: HookSaid
    call: ToolCall


def merged(call: ToolCall, views: Sequence[View]) -> ToolCall:
    """Return `call` with the changes of all `views`. Raises `ValueError` where two of them contradict each other."""
    wishes = [view for view in views if view.call.arguments != call.arguments]
    if not wishes:
        return call
    if len(wishes) == 1:
        return wishes[0].call
    changes: dict[str, tuple[JSON, str]] = {}
    for view in wishes:
        for key, value in _changes(call.arguments, view.call.arguments).items():
            other, command = changes.setdefault(key, (value, view.command))
            if other is not value and (_GONE in (other, value) or other != value):
                raise ValueError(f"the hooks `{command}` and `{view.command}` want different values for {key!r}")
    arguments = dict(call.arguments) | {key: value for key, (value, _) in changes.items()}
    return attrs.evolve(call, arguments={key: value for key, value in arguments.items() if value is not _GONE})


def answer_of(call: ToolCall, views: Sequence[View]) -> HookAnswer:
    """Return the answer of hooks that have all seen `call` as it is to go on, or have made it so themselves."""
    words = [view.said.word for view in views]
    word = next((word for word in (HookWord.DENY, HookWord.ASK, HookWord.ALLOW) if word in words), HookWord.PASS)
    reasons = (view.said.reason for view in views if view.said.word is word)
    context = "\n".join(view.said.context for view in views if view.said.context)
    return HookAnswer(call, word, "; ".join(dict.fromkeys(filter(None, reasons))), context)


def _changes(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    return changed | {key: _GONE for key in before if key not in after}
