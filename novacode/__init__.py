"""NovaCode: a coding agent for the command line, on trio.

The public Python API. Names are imported when they are first used, so that `novacode --version` pays for none.
"""

from __future__ import annotations

TYPE_CHECKING = False  # what `typing` has, without importing it: type checkers know the name
if TYPE_CHECKING:
    from collections.abc import Mapping

    from novacode.app.settings import Places, Settings, load_settings
    from novacode.app.setup import SessionWish, Setup
    from novacode.app.wiring import App, open_app
    from novacode.authority.approvals import Answer, Receipt, Scope
    from novacode.authority.policy import Mode
    from novacode.engine.agent import Agent, AgentOptions
    from novacode.engine.bus import Bus, Feed, Lagged
    from novacode.engine.limits import Limits
    from novacode.errors import NovaError
    from novacode.models.script import Script, load_script, parse_script
    from novacode.values.events import RunEnded, RunStatus, Stamped
    from novacode.values.history import Exchange, History
    from novacode.values.parts import ToolCall, User
    from novacode.values.results import Outcome, ToolResult

__all__ = [
    "Agent",
    "AgentOptions",
    "Answer",
    "App",
    "Bus",
    "Exchange",
    "Feed",
    "History",
    "Lagged",
    "Limits",
    "Mode",
    "NovaError",
    "Outcome",
    "Places",
    "Receipt",
    "RunEnded",
    "RunStatus",
    "Scope",
    "Script",
    "SessionWish",
    "Settings",
    "Setup",
    "Stamped",
    "ToolCall",
    "ToolResult",
    "User",
    "load_script",
    "load_settings",
    "open_app",
    "parse_script",
]

_HOMES: Mapping[str, str] = {
    "app.settings": "Places Settings load_settings",
    "app.setup": "SessionWish Setup",
    "app.wiring": "App open_app",
    "authority.approvals": "Answer Receipt Scope",
    "authority.policy": "Mode",
    "engine.agent": "Agent AgentOptions",
    "engine.bus": "Bus Feed Lagged",
    "engine.limits": "Limits",
    "errors": "NovaError",
    "models.script": "Script load_script parse_script",
    "values.events": "RunEnded RunStatus Stamped",
    "values.history": "Exchange History",
    "values.parts": "ToolCall User",
    "values.results": "Outcome ToolResult",
}


def __getattr__(name: str) -> object:
    import importlib  # only here: see above

    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(importlib.import_module(f"novacode.{module}"), name)
    raise AttributeError(f"module 'novacode' has no attribute {name!r}")
