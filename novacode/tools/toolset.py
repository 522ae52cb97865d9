"""The tools of a session: by name, what is enabled, what the model is offered."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, cast

from novacode.tools.base import EVERYTHING, Claims, Tool
from novacode.tools.schema import schema_of
from novacode.values.parts import ToolCall
from novacode.values.request import ToolOffer
from novacode.workspace.paths import Workspace

__all__ = ["OTHER_NAMES", "Toolset", "our_name"]

OTHER_NAMES: Mapping[str, str] = {
    "bash": "shell",
    "read": "read",
    "write": "write",
    "edit": "edit",
    "multiedit": "edit",
    "glob": "glob",
    "grep": "grep",
    "read_file": "read",
    "write_file": "write",
    "edit_file": "edit",
    "str_replace": "edit",
    "list_files": "glob",
    "search": "grep",
    "run_shell_command": "shell",
    "webfetch": "fetch",
    "bashoutput": "job_output",
    "killbash": "job_stop",
    "killshell": "job_stop",
}
"""What other agents call our tools, in lower case. Understood in rules and in messages; never callable."""


def our_name(name: str) -> str:
    """Return our name of the tool that a rule calls `name`; `name` itself where it is nobody else's."""
    return OTHER_NAMES.get(name.lower(), name)


class Toolset:
    """Tools by name, in the order given. `disabled` names stay known, so that a call of one is told apart."""

    def __init__(self, tools: Iterable[Tool[Any]], disabled: Iterable[str] = ()) -> None:
        self._tools: dict[str, Tool[Any]] = {}
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"two tools are called {tool.spec.name!r}")
            self._tools[tool.spec.name] = tool
        self._disabled = frozenset(our_name(name) for name in disabled)
        self._followers: list[tuple[Toolset, Callable[[Tool[Any]], Tool[Any]]]] = []

    def add(self, tools: Iterable[Tool[Any]]) -> None:
        """Take in tools that have come later: they are offered from the next request on. Raises for a name twice."""
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"two tools are called {tool.spec.name!r}")
            self._tools[tool.spec.name] = tool
            for follower, change in self._followers:
                follower.add((change(tool),))
        self.__dict__.pop("_offers", None)

    def changed(self, change: Callable[[Tool[Any]], Tool[Any]]) -> Toolset:
        """Return the same tools, each as `change` returns it; so are those that are added here later."""
        made = Toolset(map(change, self._tools.values()), self._disabled)
        self._followers.append((made, change))
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools, disabled ones included."""
        return tuple(self._tools)

    def find(self, name: str) -> Tool[Any] | None:
        """Return the tool called exactly `name`, enabled or not."""
        return self._tools.get(name)

    def is_enabled(self, name: str) -> bool:
        """Whether there is a tool called `name` and it is not disabled."""
        return name in self._tools and name not in self._disabled

    def offers(self) -> tuple[ToolOffer, ...]:
        """Return the enabled tools as a model is told of them: the same until one is added, so prompt caches hold."""
        return self._offers

    @cached_property
    def _offers(self) -> tuple[ToolOffer, ...]:
        specs = (tool.spec for name, tool in self._tools.items() if name not in self._disabled)
        return tuple(ToolOffer(spec.name, spec.description, schema_of(cast("Any", spec.args))) for spec in specs)

    def claims(self, call: ToolCall, workspace: Workspace) -> Claims:
        """Return what `call` would touch: nothing for an unknown tool, everything where its tool cannot tell."""
        tool = self._tools.get(call.name)
        if tool is None:
            return Claims()
        try:
            return tool.claims(call.arguments, workspace)
        except Exception:  # noqa: BLE001  a tool of somebody else's; a call must not fail before it has its slot
            return Claims(writes=frozenset({EVERYTHING}))

    def close_matches(self, name: str) -> tuple[str, ...]:
        """Return the enabled tools that `name` was probably meant for, best first; at most three."""
        enabled = [known for known in self._tools if self.is_enabled(known)]
        near = difflib.get_close_matches(name.lower(), enabled, 3)
        meant = our_name(name)
        return tuple(dict.fromkeys(([meant] if meant in enabled else []) + near))[:3]
