"""Commands that run other commands: which ones, and where in their words the other command is. Pure.

What is unwrapped is judged for itself. A harmless wrapper needs no rule of its own, every other one does. What
cannot be taken apart is a doubt (the line asks) or opaque (a deny rule with a pattern is then not proof enough).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import attrs

from novacode.authority.words import Assign, Word, names

__all__ = ["OPAQUE", "Unwrapped", "base_name", "harmless_name", "unwrap", "wraps"]

Line = tuple[Word, ...]


@attrs.frozen
class Unwrapped:
    """What a wrapper runs: `inner` commands, behind `assigns`, and shell text in `code`.

    `tail` tells that the inner command gets further words that are not known. `doubt` is why it cannot be judged.
    """

    inner: tuple[Line, ...] = ()
    assigns: tuple[Assign, ...] = ()
    code: tuple[str, ...] = ()
    harmless: bool = False
    tail: bool = False
    opaque: bool = False
    doubt: str = ""


OPAQUE = names(
    "ash at awk batch bun busybox bwrap chroot chrt crontab csh dash deno docker doas ed emacs entr expect "
    "fakeroot firejail fish flatpak flock gawk gdb ionice kubectl ksh lua lua5.4 mawk mksh nawk nerdctl node "
    "nsenter osascript parallel perl php pkexec podman pwsh python python2 python3 rlwrap rsync ruby "
    "run-parts runuser script sed setarch setpriv setsid sh ssh start-stop-daemon strace su sudo systemd-run "
    "tar taskset tclsh tcsh tmux toybox unbuffer unshare valgrind vi vim watch xargs xonsh xvfb-run zsh "
    "screen ltrace perf npx uvx uv pipx poetry pipenv conda mise direnv bash prlimit numactl fakechroot proot "
    "m4 ex view nvim sqlite3 psql mysql"
)
"""Programs that run code given in their words, their input or elsewhere. Not those that build what a project says."""

_SHELLS = names("ash bash dash ksh mksh sh zsh")
_PARSED_SHELLS = names("bash dash sh")
_NAME_CHANGERS = names("alias bind enable hash shopt trap unalias")
_HARMLESS_NAMES = names(
    "CI CLICOLOR CLICOLOR_FORCE COLUMNS FORCE_COLOR LANG LANGUAGE LINES NODE_ENV NO_COLOR RUST_BACKTRACE TERM TZ"
)
_LOCAL_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LOCAL_BUT_READ = re.compile(r".*_proxy|npm_.*|pip_.*|path|fpath|cdpath|module_path|prompt|psvar|argv|status")


def harmless_name(name: str, *, alone: bool) -> bool:
    """Whether a variable of this name changes nothing about which program runs or what it does.

    `alone`: the assignment stands alone or is a loop's, and so makes a shell variable; lower case is then harmless.
    """
    if name in _HARMLESS_NAMES or re.fullmatch(r"LC_[A-Z]+", name):
        return True
    return alone and _LOCAL_NAME.fullmatch(name) is not None and not _LOCAL_BUT_READ.fullmatch(name)


def base_name(text: str) -> str:
    """Return the program's name without its folder."""
    return text.rsplit("/", 1)[-1]


@attrs.frozen
class _Options:
    """The options of a wrapper: `flags` stand alone, `valued` take a value, written together or apart."""

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    operands: int = 0
    harmless: bool = False
    tail: bool = False

    def start(self, words: Sequence[Word]) -> int | None:
        """Return where the wrapped command begins; `None` where an option is not known or not literal."""
        index = 1
        while index < len(words) and words[index].sure and words[index].value.startswith("-"):
            text = words[index].value
            index += 1
            if text == "--":
                break
            if text in self.valued:
                index += 1
            elif text not in self.flags and not self._attached(text):
                return None
        stop = index + self.operands
        return stop if all(word.sure for word in words[1:stop]) else None

    def _attached(self, text: str) -> bool:
        if text.startswith("--"):
            return text.partition("=")[0] in self.valued and "=" in text
        if text[:2] in self.valued:
            return True
        return all(f"-{letter}" in self.flags for letter in text[1:])


def _options(
    flags: str = "", valued: str = "", *, operands: int = 0, harmless: bool = False, tail: bool = False
) -> _Options:
    return _Options(frozenset(flags.split()), frozenset(valued.split()), operands, harmless, tail)


_SIMPLE = {
    "builtin": _options(harmless=True),
    "busybox": _options(),
    "command": _options("-p", harmless=True),
    "doas": _options("-n -s", "-u -C"),
    "exec": _options("-c -l", "-a"),
    "ionice": _options("-t", "-c -n -p"),
    "nice": _options("", "-n --adjustment", harmless=True),
    "nohup": _options(),
    "setsid": _options("-c -f -w --ctty --fork --wait"),
    "stdbuf": _options("", "-i -o -e --input --output --error", harmless=True),
    "sudo": _options("-A -b -E -H -i -k -n -S -s -P", "-C -D -g -h -p -R -r -t -T -U -u --user --group"),
    "time": _options("-p -v"),
    "timeout": _options(
        "--foreground --preserve-status -v --verbose", "-k --kill-after -s --signal", operands=1, harmless=True
    ),
    "toybox": _options(),
    "unbuffer": _options("-p"),
    "xargs": _options(
        "-0 --null -r --no-run-if-empty -t --verbose -x --exit -p --interactive -o",
        "-a --arg-file -d --delimiter -E -I -L -n --max-args -P --max-procs -s --max-chars",
        tail=True,
    ),
}


def unwrap(words: Sequence[Word]) -> Unwrapped | None:
    """Return what the command of `words` runs, or `None` where it is not known to run another."""
    name = base_name(words[0].value)
    if name in _NAME_CHANGERS:
        return Unwrapped(doubt=f"{name} changes what names mean")
    special = _SPECIAL.get(name)
    if special is not None:
        return special(words)
    options = _SIMPLE.get(name)
    if options is None:
        return None
    if name == "command" and len(words) > 1 and words[1].value in {"-v", "-V"}:
        return None
    start = options.start(words)
    if start is None:
        return Unwrapped(doubt=f"an option of {name} is not known", opaque=True)
    inner = tuple(words[start:])
    if not inner:
        return None
    if name == "xargs":
        inner = _filled_in(inner, _replaced(words[1:start]))
    return Unwrapped((inner,), harmless=options.harmless, tail=options.tail)


def wraps(words: Sequence[Word]) -> bool:
    """Whether the command of `words` would run what further words say."""
    name = base_name(words[0].value)
    return name in _SIMPLE or name in {"env", "eval", "find", *_SHELLS}


def _replaced(options: Sequence[Word]) -> str:
    """Return the text that `xargs -I` replaces in every word, empty where it replaces none."""
    values = [word.value for word in options]
    for index, text in enumerate(values):
        if text == "-I":
            return values[index + 1] if index + 1 < len(values) else ""
        if text.startswith("-I"):
            return text[2:]
    return ""


def _filled_in(words: Sequence[Word], place: str) -> Line:
    """Return the words with those unknown that hold `place`: something else stands there when they run."""
    if not place:
        return tuple(words)
    return tuple(attrs.evolve(word, known=False, single=True) if place in word.value else word for word in words)


def _env(words: Sequence[Word]) -> Unwrapped | None:
    options = _options("-i --ignore-environment -0 --null -v --debug", "-u --unset -C --chdir")
    start = options.start(words)
    if start is None:
        return Unwrapped(doubt="an option of env is not known", opaque=True)
    rest = list(words[start:])
    if rest and rest[0].value == "-":
        rest.pop(0)
    assigns: list[Assign] = []
    while rest and "=" in rest[0].value:
        word = rest.pop(0)
        if not word.single:
            return Unwrapped(doubt=f"{word.source} may become a command", opaque=True)
        name, _, value = word.value.partition("=")
        assigns.append(Assign(name, Word(value, value, word.known)))
    if not rest:
        return None
    harmless = start == 1 and all(item.value.known and harmless_name(item.name, alone=False) for item in assigns)
    return Unwrapped((tuple(rest),), tuple(assigns), harmless=harmless)


def _shell(words: Sequence[Word]) -> Unwrapped | None:
    rest = list(words[1:])
    plain = True
    while rest and rest[0].sure and rest[0].value.startswith(("-", "+")) and rest[0].value != "-":
        option = rest.pop(0).value
        if not option.startswith("--") and "c" in option:
            if len(rest) == 1 and rest[0].sure and not rest[0].value.startswith("-"):
                known = base_name(words[0].value) in _PARSED_SHELLS
                return Unwrapped(code=(rest[0].value,), harmless=known and plain and option == "-c", opaque=not known)
            return Unwrapped(doubt=f"the text that {words[0].value} -c runs is not literal", opaque=True)
        plain = False
        if option in {"-o", "+o", "-O", "+O"} and rest:
            rest.pop(0)
    return Unwrapped(opaque=True)


def _eval(words: Sequence[Word]) -> Unwrapped | None:
    doubt = "eval runs text as a command"
    if all(word.sure for word in words):
        return Unwrapped(code=(" ".join(word.value for word in words[1:]),), doubt=doubt, opaque=True)
    return Unwrapped(doubt=doubt, opaque=True)


def _source(words: Sequence[Word]) -> Unwrapped | None:
    return Unwrapped(doubt=f"{words[0].value} runs a file in the shell itself", opaque=True)


def _find(words: Sequence[Word]) -> Unwrapped | None:
    inner: list[Line] = []
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if not word.known:
            return Unwrapped(tuple(inner), opaque=True, tail=True)
        if word.value not in {"-exec", "-execdir", "-ok", "-okdir"}:
            continue
        command: list[Word] = []
        while rest and rest[0].value != ";" and not (rest[0].value == "+" and command and command[-1].value == "{}"):
            command.append(rest.pop(0))
        if command:
            inner.append(_filled_in(command, "{}"))
    return Unwrapped(tuple(inner), tail=True) if inner else None


_GIT_RUNS = frozenset({"-c", "--exec-path", "--config-env", "-C", "--git-dir", "--work-tree"})


def _git(words: Sequence[Word]) -> Unwrapped | None:
    for word in words[1:]:
        if word.known and (
            word.value.partition("=")[0] in _GIT_RUNS or word.value in {"bisect", "filter-branch", "foreach"}
        ):
            return Unwrapped(opaque=True)
        if word.known and word.value.startswith(("--exec", "--upload-pack", "--receive-pack", "--open-files-in-pager")):
            return Unwrapped(opaque=True)
    return None


_SPECIAL: dict[str, Callable[[Sequence[Word]], Unwrapped | None]] = {
    "env": _env,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "find": _find,
    "git": _git,
    **dict.fromkeys(_SHELLS, _shell),
}
