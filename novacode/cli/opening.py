"""What `run` and `chat` are told about the session they open: the options both have, and what they come to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click
import trio

from novacode.app.scheduling import seed_scheduler
from novacode.app.settings import Places, environment, home_folder, load_settings
from novacode.app.setup import SessionWish, Setup
from novacode.app.tape_seam import Replay
from novacode.authority.policy import Mode
from novacode.cli.early import HERE
from novacode.cli.outlet import can_ask
from novacode.errors import UsageError
from novacode.values.parts import JSON

if TYPE_CHECKING:
    from novacode.app.choosing import Choice

__all__ = ["Opening", "opening_of", "opening_options", "setup_of", "start"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)

_OPTIONS = (
    click.option("-m", "--model", metavar="NAME", help="provider/model, script:FILE, or demo."),
    click.option("--base-url", metavar="URL", help="Another endpoint for the model's protocol."),
    click.option("--permission-mode", "mode", metavar="MODE", help=f"{', '.join(Mode)}; camelCase is understood."),
    click.option(
        "--yolo", "--dangerously-skip-permissions", "yolo", is_flag=True, help="Same as --permission-mode bypass."
    ),
    click.option("--allow", "--allowed-tools", "--allowedTools", "allow", multiple=True, metavar="RULE"),
    click.option("--ask", "ask", multiple=True, metavar="RULE"),
    click.option("--deny", "--disallowed-tools", "--disallowedTools", "deny", multiple=True, metavar="RULE"),
    click.option("--max-turns", type=click.IntRange(min=1), metavar="N"),
    click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="S"),
    click.option("--max-output-tokens", type=click.IntRange(min=1), metavar="N"),
    click.option("--max-budget-usd", "--max-price", "max_budget_usd", type=click.FloatRange(min=0), metavar="X"),
    click.option("-c", "--continue", "continue_", is_flag=True, help="Go on with the latest session of this folder."),
    click.option("-r", "--resume", metavar="ID", default="", help="Go on with the session ID (its beginning will do)."),
    click.option("--fork-session", is_flag=True, help="With -c or -r: go on with a copy."),
    click.option("--no-session", "--ephemeral", "no_session", is_flag=True, help="Keep nothing."),
    click.option("-C", "--cwd", type=_FOLDER, default=None, metavar="DIR", help="Work there."),
    click.option("--add-dir", type=_FOLDER, multiple=True, metavar="DIR", help="Another folder of the work."),
    click.option(
        "-w",
        "--worktree",
        is_flag=False,
        flag_value="",
        metavar="[NAME]",
        help="Work in a new git worktree, on the branch novacode/NAME; removed again where nothing was changed."
        " The word behind it is the NAME: without one write it last, or -w -- PROMPT.",
    ),
    click.option("--deterministic", is_flag=True, help="The same bytes out every time; implied by script: and demo."),
    click.option(
        "--sandbox/--no-sandbox",
        default=None,
        help="Commands write in the work's folders only and have no network; Linux, with bubblewrap.",
    ),
    click.option("--simulate", is_flag=True, help="A world in memory: nothing real is run, read or written."),
    click.option("--seed", type=int, default=None, metavar="N", help="Which order of what may happen in any order."),
    click.option("--system-prompt", metavar="TEXT", help="Instead of NovaCode's own."),
    click.option("--append-system-prompt", metavar="TEXT"),
    click.option(
        "--overlap", type=click.Choice(("declared", "all", "none")), help="Which calls of a turn may overlap."
    ),
    click.option("-q", "--quiet", is_flag=True),
    click.option("-v", "--verbose", is_flag=True),
)


@attrs.frozen(eq=False, repr=False)
class Opening:
    """A session to open. `flags` are settings keys with values; `None` values are not set.

    `worktree` is the name of one to make, empty for any name, `None` for none. `seed` is `None` where none was given:
    then it is that of the tape which is replayed, or 0.
    """

    cwd: Path
    extra: tuple[Path, ...] = ()
    session: SessionWish = attrs.field(factory=SessionWish)
    flags: Mapping[str, JSON] = attrs.field(factory=dict)
    deterministic: bool = False
    seed: int | None = None
    simulate: bool = False
    quiet: bool = False
    verbose: bool = False
    worktree: str | None = None
    record: Path | None = None
    replay: Replay | None = None

    @property
    def scripted(self) -> bool:
        """Whether the model comes from a file."""
        model = str(self.flags.get("model") or "")
        return model == "demo" or model.startswith("script:")

    @property
    def order(self) -> int:
        """The seed to use."""
        if self.seed is not None:
            return self.seed
        return 0 if self.replay is None else self.replay.tape.header.seed


def opening_options(command: F) -> F:
    """Give a command the options that say which session to open; `opening_of` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def opening_of(given: Mapping[str, Any]) -> Opening:
    """Return what the options of `opening_options` come to. Raises `UsageError` for what does not go together."""
    earlier = given["continue_"] or given["resume"]
    if earlier and given["no_session"]:
        raise UsageError("--no-session keeps nothing, and -c and -r write to a session that is kept: leave one out")
    if given["fork_session"] and not earlier:
        raise UsageError("--fork-session takes a copy of a session: say of which one with -c or -r ID")
    return Opening(
        (given["cwd"] or Path.cwd()).absolute(),
        tuple(path.absolute() for path in given["add_dir"]),
        SessionWish(given["continue_"], given["resume"], given["fork_session"], not given["no_session"]),
        _flags(given),
        given["deterministic"],
        given["seed"],
        given["simulate"],
        given["quiet"],
        given["verbose"],
        given["worktree"],
    )


def taped(opening: Opening, record: Path | None, replay: Path | None, tools: str | None) -> Opening:
    """Return `opening` with the tape that is to be written or played.

    Raises `UsageError` for what does not go together, and `InputError` for a tape that cannot be read.
    """
    if replay is None:
        if tools is not None:
            raise UsageError("--replay-tools says what a replay does with tools: give the tape with --replay TAPE")
        return attrs.evolve(opening, record=record)
    if record is not None:
        raise UsageError("--record and --replay exclude each other: what is replayed is on a tape already")
    if opening.simulate:
        raise UsageError("--simulate and --replay exclude each other: both take the place of the world; leave one out")
    everything = tools != "real"
    if everything and opening.worktree is not None:
        raise UsageError("--worktree makes a real folder, and a replay touches nothing: leave it out")
    from novacode.models.tape_file import read_tape  # hardly any run has a tape

    return attrs.evolve(opening, replay=Replay(read_tape(replay), everything))


def setup_of(opening: Opening, cwd: Path) -> Setup:
    """Read the settings and return what the session is made from. Raises `SettingsError` and `UsageError`.

    Settings and rules are those of the folder that was asked for, also where `cwd` is a worktree of it.
    """
    environ = environment()
    home = home_folder(environ)
    settings = load_settings(Places(home, opening.cwd), environ, opening.flags)
    replay = opening.replay
    return Setup(
        settings,
        environ,
        home,
        cwd,
        opening.extra,
        opening.session,
        somebody=can_ask() and not (replay and replay.everything),
        deterministic=opening.deterministic or replay is not None,
        seed=opening.order,
        choice=_recorded(opening),
        simulate=opening.simulate,
        rules_of=opening.cwd,
        record=opening.record,
        replay=replay,
    )


def _recorded(opening: Opening) -> Choice | None:
    """Return the model on the tape that is replayed; `None` without one."""
    if opening.replay is None:
        return None
    from novacode.app.taping import choice_of  # hardly any run has a tape

    return choice_of(opening.replay.tape.header, opening.flags.get("model"))


def start(opening: Opening, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Run `function` in an event loop with the scheduler and the clock that `opening` wants."""
    if opening.deterministic or opening.scripted or opening.replay is not None:
        seed_scheduler(opening.order)
    HERE.note()
    return trio.run(function, *arguments, clock=_clock(opening))


def _clock(opening: Opening) -> trio.abc.Clock | None:
    """Return the virtual clock where nothing is real, in a simulation or a replay of everything; else the real one.

    With a person at the terminal a virtual clock would run ahead of them: nothing else happens while they think.
    """
    played = opening.replay is not None and opening.replay.everything
    if not played and (not opening.simulate or can_ask()):
        return None
    from trio.testing import MockClock  # only here: a real run does not pay for importing it

    return MockClock(autojump_threshold=0)


def _flags(given: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the options that are settings, under the keys of the settings table."""
    return {
        "model": given["model"],
        "base_url": given["base_url"],
        "permissions.mode": "bypass" if given["yolo"] else given["mode"],
        "permissions.allow": list(given["allow"]) or None,
        "permissions.ask": list(given["ask"]) or None,
        "permissions.deny": list(given["deny"]) or None,
        "limits.max_turns": given["max_turns"],
        "limits.max_seconds": given["max_seconds"],
        "limits.max_output_tokens": given["max_output_tokens"],
        "limits.max_budget_usd": given["max_budget_usd"],
        "overlap": given["overlap"],
        "sandbox": given["sandbox"],
        "system_prompt": given["system_prompt"],
        "append_system_prompt": given["append_system_prompt"],
    }
