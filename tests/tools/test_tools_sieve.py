"""ripgrep before grep: it may only pass over what grep would find nothing in, and nobody can tell that it was asked."""

import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from novacode.errors import ToolFailed
from novacode.tools import grep, matches, sieve
from novacode.tools.bytepattern import byte_pattern
from novacode.tools.grep import GrepTool
from novacode.tools.patterns import compiled
from novacode.tools.sieve import find_ripgrep
from novacode.workspace.base import Command, Exit
from novacode.workspace.processes import RealProcesses

GREP = GrepTool()

needs_rg = pytest.mark.skipif(find_ripgrep(Path("/nowhere")) is None, reason="ripgrep (`rg`) is not installed")

PIECES = [
    "a", "b", "k", "S", "é", "ß", ".", r"\.", "_", " ", "[ab]", "[^a]", "[^\\s]", "[a-k]", "[é-ü]", r"\w", r"\d", r"\s",
    r"\S", r"\W", r"\b", r"\B", "^", "$", "|", "a?", "b*", "a+", ".*", ".+?", "a{2}", "b{1,}", ".{,3}", "[ab]{2,30}",
    "(a)", "(?:b|c)", "(ab)+", "(a|b)?", "(?:a|b)*", "(a+)+", "k{}", "x{", "\\t", "\\r", "\\x41", "(?=a)", "(?i:k)",
    r"\Z", "[]a]", "[^]]", r"[\]b]", "\r", "a++", "[a-", "\u017f", "\ufffd",
]  # fmt: skip
CHARACTERS = [
    "a",
    "b",
    "c",
    "k",
    "S",
    "_",
    " ",
    "\t",
    ".",
    "1",
    "A",
    "é",
    "ß",
    "\u212a",
    "\u2028",
    "\r",
    "\x0b",
    "\U0001f600",
]


def lines_of(data: bytes) -> list[str]:
    """The lines of a file without a byte order mark, as grep sees them."""
    text = re.sub("[\udc80-\udcff]", "\ufffd", data.decode("utf-8", "surrogateescape"))
    return text.replace("\r\n", "\n").split("\n")


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
    st.lists(
        st.sampled_from([*(c.encode() for c in CHARACTERS), b"\n", b"\r\n", b"\xff", b"\xc3", b"\0"]), max_size=12
    ),
    st.booleans(),
)
def test_where_a_line_matches_the_byte_pattern_does(pattern, pieces, ignore_case):
    data = b"".join(pieces)
    try:
        search = compiled(pattern, ignore_case=ignore_case)
    except ToolFailed:
        return
    made = byte_pattern(pattern, ignore_case=ignore_case)
    if made is not None and any(search.regex.search(line) for line in lines_of(data)):
        in_python = re.compile(made.replace("(?-u:", "(?:").encode(), re.MULTILINE)
        assert in_python.search(data), (pattern, made, data)


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize("piece", ["i", "K", "s", "[a-z]", "[^a]", r"\w", r"\D", ".", "ß", "É", "[é-ü]", "-"])
def test_a_character_is_in_bytes_what_it_is_in_text(piece, ignore_case):
    """Whatever the case rules of this Python's Unicode: the bytes let through what the text does."""
    find = re.compile(piece, re.IGNORECASE if ignore_case else 0).fullmatch
    made = byte_pattern(piece, ignore_case=ignore_case)
    fits = re.compile(made.replace("(?-u:", "(?:").encode()).search
    every = (chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000 and code != 0x0A)
    assert [char for char in every if find(char) and not fits(char.encode())] == []


@pytest.mark.parametrize(
    ("pattern", "made"),
    [
        ("ab", r"[\x61][\x62]"),
        ("^a|b$", r"^[\x61]|[\x62]\x0d?$"),
        (r"\bé{2,}\b", r"(?:\xc3\xa9){2,}"),
        ("(?:ab)+c*?", r"(?:[\x61][\x62])+[\x63]*"),
        ("[^a]x$", r"(?:[\x00-\x09\x0b-\x60\x62-\x7f]|[\x80-\xff]+)[\x78]"),
        ("a{,500}b", r"[\x61]{0,}[\x62]"),
    ],
)
def test_what_is_asked_of_the_bytes(pattern, made):
    assert (
        byte_pattern(pattern, ignore_case=False)
        == rf"(?-u:(?:{made})|^(?:\xff\xfe|\xfe\xff|\xef\xbb\xbf|\x00\x00\xfe\xff))"
    )


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "(?=a)b", "(?i)a", "(?P<n>a)", r"\Aa", r"a\Z", "a*", r"\b", "(a+)+b", "(a|ab)*c", r"\x41", r"\n", "a\nb",
     r"\N{BULLET}", "a{}", "\ufffd", "a" * 1001, "a*b*c*d*e*f"],
)  # fmt: skip
def test_what_is_left_to_python(pattern):
    assert byte_pattern(pattern, ignore_case=False) is None


class Watched(RealProcesses):
    """Real processes that keep what was run, or run something else instead."""

    def __init__(self, instead: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.instead = instead
        self.codes: list[int] = []

    async def run(
        self, command: Command, output: Callable[[bytes], None], errors: Callable[[bytes], None] | None = None
    ) -> Exit:
        """Run and remember."""
        if self.instead:
            command = Command(self.instead, command.cwd, command.marker)
        ended = await super().run(command, output, errors)
        self.codes.append(ended.code)
        return ended


@pytest.fixture
def both(bench, monkeypatch):
    """Gives the answers of grep with ripgrep and without; limits are low, so that little passes them."""
    monkeypatch.setattr(sieve, "_WORTH", 0)
    monkeypatch.setattr(sieve, "_MOST_FILES", 7)
    monkeypatch.setattr(matches, "_LONGEST_SEARCHED", 30)
    for module in (grep, matches):
        monkeypatch.setattr(module, "LARGEST_SEARCHED", 300)
    monkeypatch.setattr(grep, "_MOST", 301)
    bench.processes = Watched()

    async def answers(**arguments):
        said = []
        for path in (os.environ["PATH"], "/nowhere"):
            with monkeypatch.context() as patch:
                patch.setenv("PATH", path)
                said.append(await bench.run(GREP, **arguments))
        return said

    return answers


def content(chance: random.Random) -> bytes:
    """A small file of any kind."""
    text = "".join(chance.choice([*CHARACTERS, "\n", "\r\n"]) for _ in range(chance.choice([0, 5, 40, 90, 290])))
    kind = chance.randrange(8)
    if kind < 3:
        mark, codec = [("\ufeff", "utf-8"), ("\ufeff", "utf-16-le"), ("\ufeff", "utf-32-be")][kind]
        return (mark + text).encode(codec)
    data = text.encode()
    return {3: data + b"\0", 4: data.replace(b"c", b"\xff"), 5: data.replace("é".encode(), b"\xc3")}.get(kind, data)


@needs_rg
@pytest.mark.parametrize("seed", range(12))
async def test_the_answer_is_the_same_with_ripgrep_and_without(bench, both, seed):
    chance = random.Random(seed)
    names = ["a", ".hidden", "-e", "new\nline", "d/b", "d/.gitignore", "d/e/ü", "ignored.log", "x y", "-", "d/c.log"]
    for name in chance.sample(names, 8):
        bench.put(name, content(chance))
    bench.put(".gitignore", "*.log\n!c.log\n")
    bench.put(os.fsdecode(b"bad\xff"), content(chance))
    for _ in range(25):
        pattern = "".join(chance.choices(PIECES, k=chance.randint(1, 4)))
        try:
            compiled(pattern, ignore_case=False)
        except ToolFailed:
            continue
        arguments = {"pattern": pattern, "ignore_case": chance.random() < 0.4, "context": chance.choice([0, 1])}
        with_rg, without = await both(**arguments)
        assert with_rg == without, arguments
    assert bench.processes.codes
    assert set(bench.processes.codes) <= {0, 1}


@needs_rg
async def test_only_what_may_match_is_read(bench, both, monkeypatch):
    for n in range(20):
        bench.put(f"{n:02}", "needle\n" if n == 11 else "hay\n")
    read = []
    load = grep.load_listed
    monkeypatch.setattr(grep, "load_listed", lambda path, most: read.append(Path(path).name) or load(path, most))
    with_rg, without = await both(pattern="need.e")
    assert with_rg == without == "11:1:needle"
    assert read == ["11", *(f"{n:02}" for n in range(20))]


@needs_rg
async def test_lines_and_files_that_were_cut_are_told_alike(bench, both):
    bench.put("cut", "hay\n" * 100)
    bench.put("across", "a" * 40 + "x\ny\n")  # `x[^b]y` is over the end of a line here, and on none
    bench.put("beyond", "a" * 40 + "x-y\n")
    with_rg, without = await both(pattern="x[^b]y")
    assert with_rg == without
    assert with_rg.splitlines()[1:] == [
        "[1 long lines were searched in their first 30 characters]",
        "[1 large files were searched in their first 300 bytes]",
    ]


@needs_rg
@pytest.mark.parametrize(
    "instead",
    [
        ("/bin/sh", "-c", "printf './00\\0'; exit 2"),
        ("/bin/sh", "-c", "kill -9 $$"),
        ("/bin/sh", "-c", "exit 0"),
        ("/bin/sh", "-c", "printf './elsewhere\\0'"),
        ("/nowhere/rg",),
    ],
)
async def test_a_ripgrep_that_fails_is_not_missed(bench, both, instead):
    bench.processes = Watched(instead)
    for n in range(20):
        bench.put(f"{n:02}", "needle\n" if n % 9 == 0 else "hay\n")
    with_rg, without = await both(pattern="needle")
    assert with_rg == without == "00:1:needle\n09:1:needle\n18:1:needle"
    assert len(bench.processes.codes) <= 1


@needs_rg
async def test_a_ripgrep_that_hangs_is_stopped_and_done_without(bench, both, monkeypatch):
    monkeypatch.setattr(sieve, "_PATIENCE", 0.05)
    bench.processes = Watched(("/bin/sleep", "300"))
    bench.put("f", "needle\n")
    with trio.fail_after(20):
        assert (await both(pattern="needle"))[0] == "f:1:needle"
    assert bench.processes.reaped.processes == 1


@needs_rg
async def test_a_cancel_while_ripgrep_runs_leaves_nothing(bench, both):
    bench.processes = Watched(("/bin/sleep", "300"))
    bench.put("f", "needle\n")
    with trio.fail_after(20), trio.move_on_after(0.05) as scope:
        await both(pattern="needle")
    assert scope.cancelled_caught
    assert bench.processes.reaped.processes == 1
    assert bench.processes.reaped.survivors == ()


async def test_little_is_read_without_a_process(bench):
    """The bench's processes fail the test where one is started."""
    bench.put("f", "needle\n")
    assert await bench.run(GREP, pattern="needle") == "f:1:needle"


def test_a_program_the_workspace_holds_is_never_run(tmp_path, monkeypatch):
    """What the model may write must not be run by a tool that only reads."""
    root, outside = tmp_path / "work", tmp_path / "bin"
    for folder in (root / "bin", outside):
        folder.mkdir(parents=True)
        shutil.copy("/bin/sh", folder / "rg")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "rg").symlink_to(root / "bin" / "rg")
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f"bin:{root}/bin:{tmp_path}/links:{outside}")
    assert find_ripgrep(root) == f"{outside}/rg"
    monkeypatch.setenv("PATH", f"bin:{root}/bin:{tmp_path}/links")
    assert find_ripgrep(root) is None
