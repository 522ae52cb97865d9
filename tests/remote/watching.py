"""A page of the remote that a test looks at, and the session that it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
from page_script import Told

if TYPE_CHECKING:
    from page_server import PageServer

__all__ = ["JSON", "Watched"]

JSON = dict[str, Any]


@attrs.define
class Watched:
    """A page that watches a session of the test's making."""

    page: Any
    server: PageServer
    told: Told
    replies: dict[str, Callable[[JSON], list[JSON]]]

    def say(self, *messages: JSON) -> None:
        """Send messages of the wire to the page."""
        self.server.say(*messages)

    def asks(self, *questions: JSON) -> None:
        """The list of open questions is now this one."""
        self.server.say(self.told.approvals(*questions))

    def answers(self) -> Any:
        """The buttons of questions that can be pressed."""
        return self.page.locator(".answers button:enabled")
