"""What the model is told before anything else, and the requests that are made of it.

The text does not change while a session lasts, and the tools only where some come later: a provider's prompt cache then
serves all of it from the second request on.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from novacode.tools.toolset import Toolset
from novacode.values.history import History
from novacode.values.request import ModelRequest

__all__ = ["Prompt", "requests"]

_CORE = """\
You are NovaCode, a coding agent at a command line. You work in the user's folder with the tools you are given.

Work like this:
- Look before you change: read the files that matter, then edit. Keep changes small and in the style of what is there.
- Calls that do not depend on each other belong in one reply: they run at the same time, while you still write. Calls \
that touch the same file run in the order you write them.
- After a change run the test or command that proves it, and read its output.
- A result tells what really happened. Invalid arguments, a refusal and a command that failed are different things: \
mend the arguments, do it another way or ask, or read the output and fix the cause.
- What was interrupted may have done part of its work. Look before you repeat it.
- When the task is done, say briefly what you changed and how you checked it. If you could not do it, say so.
"""


@attrs.frozen(eq=False, repr=False)
class Prompt:
    """The parts of the system prompt. `replaced` takes the place of NovaCode's own text, `appended` follows it all."""

    folder: str
    platform: str
    instructions: str = ""
    replaced: str | None = None
    appended: str | None = None

    @property
    def text(self) -> str:
        """The system prompt."""
        core = _CORE if self.replaced is None else self.replaced
        place = f"Working folder: {self.folder}\nPlatform: {self.platform}"
        return "\n\n".join(
            part.strip() for part in (core, place, self.instructions, self.appended or "") if part.strip()
        )


def requests(model: str, prompt: Prompt, tools: Toolset) -> Callable[[History, int | None], ModelRequest]:
    """Return what makes the request for a history; the number is how many tokens the answer may have at most."""
    system = prompt.text

    def request(history: History, output_left: int | None) -> ModelRequest:
        return ModelRequest(model, system, history, tools.offers(), output_left)

    return request
