"""Which commands change nothing, with which options: the table of read-only commands and how it is read. Pure.

Every option has to be in the table: one that is not known, or is abbreviated, takes the command out of it. A new
version of a program so can add an option that writes without making this table wrong.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from novacode.authority.readonly_git import GIT, GIT_GLOBALS
from novacode.authority.readonly_table import TABLE
from novacode.authority.usage import Found, Usage, read_usage
from novacode.authority.words import Word, names

__all__ = ["NAMES", "Found", "judge"]

_ANY_ARGUMENTS = frozenset({":", "echo", "false", "true"})
_VERSIONS = frozenset({"clang", "cmake", "gcc", "git", "jq", "make", "node", "python", "python3", "rg"})
_SYSTEM_FOLDERS = ("/bin/", "/usr/bin/")


def judge(words: Sequence[Word]) -> Found | str:
    """Return what a read-only command reads and writes (`tee` alone writes), or why it is not one.

    The first word is the command. It has to be literal; a path is one only in a system folder.
    """
    name = words[0].value
    for folder in _SYSTEM_FOLDERS:
        if name.startswith(folder) and "/" not in name[len(folder) :]:
            name = name[len(folder) :]
    arguments = list(words[1:])
    if name in _ANY_ARGUMENTS or (name == "printf" and _prints(arguments)):
        return _only_prints(arguments)
    for word in arguments:
        if not word.known:
            return f"`{word.source}` is only known when it runs"
        if word.glob and (word.value[0] in "*?" or "[" in word.value or word.value.startswith("-")):
            return f"`{word.source}` may become an option"
        if _climbs(word):
            return f"`{word.source}` may name the parent folder"
    if len(arguments) == 1 and arguments[0].value == "--version" and name in _VERSIONS:
        return Found()
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments)
    usage = TABLE.get(name)
    return f"{name} is not in the table" if usage is None else read_usage(usage, arguments)


def _climbs(word: Word) -> bool:
    """Whether a pattern may match `..`, as `.*` does in every shell but the newest."""
    parts = word.value.split("/") if word.glob else ()
    return any(part.startswith(".") and part not in {".", ".."} and fnmatch.fnmatchcase("..", part) for part in parts)


# `printf '%n' PATH` puts a number into PATH.
_SETS_A_VARIABLE = re.compile(r"%[-+ #0'*.$\d]*[hjlLqtz]*n")


def _prints(arguments: Sequence[Word]) -> bool:
    if not arguments or not arguments[0].sure or arguments[0].value.startswith("-"):
        return False
    return _SETS_A_VARIABLE.search(arguments[0].value.replace("%%", "")) is None


def _only_prints(arguments: Sequence[Word]) -> Found | str:
    for word in arguments:
        if not word.known and not word.single:
            return f"`{word.source}` may become several words; put it in double quotes"
        if _climbs(word):
            return f"`{word.source}` may name the parent folder"
    return Found(reads=tuple(word.path for word in arguments if word.glob))


def _git(arguments: Sequence[Word]) -> Found | str:
    rest = list(arguments)
    while rest and rest[0].value in GIT_GLOBALS:
        rest.pop(0)
    if not rest or rest[0].glob:
        return "git without a literal command"
    if any("%G" in word.value or "signature" in word.value for word in rest):
        return "git asks gpg about signatures"
    usage = GIT.get(rest[0].value)
    return f"git {rest[0].value} is not in the table" if usage is None else read_usage(usage, rest[1:])


_FIND_TESTS = names(
    "-amin -atime -cmin -ctime -gid -group -ilname -iname -inum -ipath -iregex -links -lname -maxdepth "
    "-mindepth -mmin -mtime -name -path -perm -regex -regextype -size -type -uid -used -user -wholename "
    "-xtype -printf"
)
_FIND_WORDS = names(
    "-a -and -daystart -depth -empty -executable -false -ls -mount -nogroup -noleaf -not -nouser -nowarn -o "
    "-or -print -print0 -prune -quit -readable -true -warn -writable -xdev ! , ( )"
)
_FIND_PATHS = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})


def _diff(arguments: Sequence[Word]) -> Found | str:
    """Of two folders it compares the files in them and follows links there, so these are read as well."""
    found = read_usage(TABLE["diff"], arguments)
    if isinstance(found, str):
        return found
    inside = (f"{path}/{name}" for path in found.reads for name in ("*", ".*"))
    return Found(reads=(*found.reads, *inside))


def _find(arguments: Sequence[Word]) -> Found | str:
    rest = list(arguments)
    reads: list[str] = []
    while rest and rest[0].value == "-P":
        rest.pop(0)
    while rest and not rest[0].value.startswith(("-", "(", "!", ",")):
        reads.append(rest.pop(0).path)
    while rest:
        word = rest.pop(0)
        if word.value in _FIND_WORDS:
            continue
        if word.value not in _FIND_TESTS | _FIND_PATHS or not rest:
            return f"find {word.value} is not in the table"
        value = rest.pop(0)
        if word.value in _FIND_PATHS:
            reads.append(value.path)
    return Found(reads=tuple(reads or ["."]))


_SED_SCRIPT = re.compile(
    r"""(?:(?:\d+|\$)(?:,(?:\d+|\$|\+\d+))?|/[^/\\\n\[]+/)?[pdq=]"""  # an address and a command that only prints
    r"""|(?:\d+(?:,\d+)?)?s/[^/\\\n\[]*/[^/\\\n]*/[gIip0-9]*"""
)


def _sed(arguments: Sequence[Word]) -> Found | str:
    found = read_usage(_SED, arguments)
    if isinstance(found, str):
        return found
    scripts = found.patterns or found.skipped
    if not scripts or found.skipped[1:]:
        return "sed without a script"
    for script in scripts:
        if any(not _SED_SCRIPT.fullmatch(part.strip()) for part in script.split(";")):
            return f"the sed script {script!r} is not one that is known only to print"
    return found


_SED = Usage.of(
    "-n --quiet --silent -E -r --regexp-extended -u --unbuffered -s --separate -z --null-data --posix --sandbox",
    valued="-l --line-length",
    patterns="-e --expression",
    skip=1,
)
_FILE_TESTS = names("-b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x")
_COMPARISONS = names("= == != -eq -ne -lt -le -gt -ge")


def _test(arguments: Sequence[Word]) -> Found | str:
    rest = [word for word in arguments if word.value != "!"]
    values = [word.value for word in rest]
    if any(word.glob for word in rest):
        return "a pattern in a test"
    if len(rest) == 2 and values[0] in _FILE_TESTS:
        return Found(reads=(rest[1].path,))
    if len(rest) == 2 and values[0] in {"-z", "-n"}:
        return Found()
    if len(rest) == 3 and values[1] in _COMPARISONS:
        if values[1].startswith("-") and not (values[0].isdecimal() and values[2].isdecimal()):
            return "a comparison that evaluates what it compares"
        return Found()
    return "a test that is not in the table"


def _bracket(arguments: Sequence[Word]) -> Found | str:
    if not arguments or arguments[-1].value != "]":
        return "[ without ]"
    return _test(arguments[:-1])


_SET = re.compile(r"[-+][eux]*(?:o)?")


def _set(arguments: Sequence[Word]) -> Found | str:
    rest = [word.value for word in arguments]
    while rest:
        option = rest.pop(0)
        if len(option) < 2 or not _SET.fullmatch(option):
            return f"set {option} is not in the table"
        if option.endswith("o") and (not rest or rest.pop(0) not in {"pipefail", "errexit", "nounset", "xtrace"}):
            return "set -o with an option that is not in the table"
    return Found() if arguments else "set alone shows every variable"


def _cd(arguments: Sequence[Word]) -> Found | str:
    rest = list(arguments)
    if rest and rest[0].value == "--":
        rest.pop(0)
    if len(rest) != 1 or rest[0].glob or rest[0].value.startswith("-") or not rest[0].value:
        return "cd to a folder that is not literal"
    return Found(reads=(rest[0].path,))


def _command(arguments: Sequence[Word]) -> Found | str:
    if len(arguments) >= 2 and arguments[0].value in {"-v", "-V"}:
        return Found()
    return "command runs another command"


def _tee(arguments: Sequence[Word]) -> Found | str:
    found = read_usage(Usage.of("-a --append -i --ignore-interrupts -p"), arguments)
    if isinstance(found, str):
        return found
    if any(word.glob for word in arguments):
        return "tee to a pattern"
    return Found(writes=found.reads)


_JQ_REACHES_OUT = re.compile(r"\b(?:env|ENV|import|include)\b")


def _jq(arguments: Sequence[Word]) -> Found | str:
    found = read_usage(TABLE["jq"], arguments)
    if isinstance(found, str):
        return found
    if any(_JQ_REACHES_OUT.search(text) for text in found.skipped):
        return "a jq filter that reaches out of its input"
    return found


_SPECIAL: dict[str, Callable[[Sequence[Word]], Found | str]] = {
    "[": _bracket,
    "cd": _cd,
    "command": _command,
    "diff": _diff,
    "find": _find,
    "git": _git,
    "jq": _jq,
    "sed": _sed,
    "set": _set,
    "tee": _tee,
    "test": _test,
}

NAMES = tuple(sorted({*_ANY_ARGUMENTS, "printf", *TABLE, *_SPECIAL}))
"""Every command of the table, for the documentation and its test."""
