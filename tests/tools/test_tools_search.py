"""glob and grep, and the walk, the path patterns and the regular expressions beneath them."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from novacode.errors import ToolFailed
from novacode.tools import matches
from novacode.tools.cputime import CpuTimeOver, cpu_limit
from novacode.tools.glob import GlobTool
from novacode.tools.grep import GrepTool
from novacode.tools.pathglob import PathGlob
from novacode.tools.patterns import compiled
from novacode.tools.walk import walk
from novacode.workspace.processes import RealProcesses

GLOB, GREP = GlobTool(), GrepTool()


def found(root: Path) -> list[str]:
    return [path for path in walk(root) if path is not None]


@pytest.fixture
def tree(bench):
    """A repository with ignore files at several depths."""
    (bench.root / ".git" / "info").mkdir(parents=True)
    bench.put(".git/info/exclude", "excluded.txt\n")
    bench.put(".git/HEAD", "ref")
    bench.put(".gitignore", "*.log\nbuild/\n/top.txt\n!keep.log\n# a comment\n\ndocs/*.tmp\n")
    bench.put("src/.gitignore", "generated/\n!special.log\n*.py[co]\n")
    for name in (
        "a.txt", "a.log", "keep.log", "top.txt", "excluded.txt", "build/x.txt", ".hidden", "docs/x.tmp", "docs/y.md",
        "src/main.py", "src/main.pyc", "src/special.log", "src/other.log", "src/generated/x.py", "src/top.txt",
        "src/deep/build/y.txt", "src/deep/z.py", "src/deep/generated",
    ):  # fmt: skip
        bench.put(name, f"needle in {name}\n")
    return bench


VISIBLE = [
    ".gitignore", ".hidden", "a.txt", "docs/y.md", "keep.log", "src/.gitignore", "src/deep/generated", "src/deep/z.py",
    "src/main.py", "src/special.log", "src/top.txt",
]  # fmt: skip


def test_the_walk_follows_the_ignore_files_in_one_order(tree):
    assert found(tree.root) == VISIBLE


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge, and is not installed")
def test_the_walk_finds_what_git_does(tree):
    shutil.rmtree(tree.root / ".git")
    subprocess.run(["git", "init", "-q", "."], cwd=tree.root, check=True)
    tree.put(".git/info/exclude", "excluded.txt\n")
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=tree.root, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert sorted(found(tree.root)) == sorted(listed.split("\0")[:-1])


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is the judge, and is not installed")
@pytest.mark.parametrize(
    ("pattern", "flags"),
    [("needle", []), ("NEEDLE in src", ["-i"]), (r"needle in .*\.(py|md)$", []), (r"^n\w+\b", [])],
)
async def test_grep_finds_what_ripgrep_does(tree, pattern, flags):
    options = ["--no-config", "--hidden", "--no-heading", "-n", "--glob", "!.git", *flags]
    listed = await trio.run_process(["rg", *options, pattern, "."], cwd=tree.root, capture_stdout=True)
    said = await tree.run(GREP, pattern=pattern, ignore_case="-i" in flags)
    assert sorted(said.splitlines()) == sorted(line.removeprefix("./") for line in listed.stdout.decode().splitlines())


def test_ignore_files_above_the_start_hold_too(tree):
    assert found(tree.root / "src") == [path.removeprefix("src/") for path in VISIBLE if path.startswith("src/")]


def test_an_ignored_folder_that_is_asked_for_is_looked_into(tree):
    assert found(tree.root / "build") == ["x.txt"]
    assert found(tree.root / "src" / "deep" / "build") == ["y.txt"]


def test_links_pipes_and_unreadable_folders_are_passed_over(bench, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("needle")
    (bench.root / "out").symlink_to(outside)
    (bench.root / "up").symlink_to(bench.root)
    os.mkfifo(bench.root / "pipe")
    bench.put("f", "needle")
    assert found(bench.root) == ["f"]
    assert found(bench.root / "not-there") == []


async def test_br_109_grep_over_a_folder_with_a_pipe_ends(bench):
    os.mkfifo(bench.root / "pipe")
    bench.put("f", "needle\n")
    with trio.fail_after(5):
        assert await bench.run(GREP, pattern="needle") == "f:1:needle"
        with pytest.raises(ToolFailed, match="named pipe"):
            await bench.run(GREP, pattern="needle", path="pipe")


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("/*.py", "src/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/*.py", "a.py", True),
        ("src/**", "src/x/y", True),
        ("**/test_*.{js,ts}", "x/test_a.ts", True),
        ("**/test_*.{js,ts}", "x/test_a.tsx", False),
        ("*.{j,t}s{,x}", "a.tsx", True),
        ("{a,b{c,d}}", "bd", True),
        ("[a-c]?.txt", "bx.txt", True),
        ("[!a-c].txt", "b.txt", False),
        ("[^a-c].txt", "d.txt", True),
        ("[z-a].txt", "[z-a].txt", True),
        ("a[b", "a[b", True),
        ("a{b", "a{b", True),
        ("a\\*", "a*", True),
        ("a\\*", "ab", False),
        ("a.c", "abc", False),
        ("!*.py", "a.py", False),
        ("!*.py", "a.js", True),
        ("./src/a", "src/a", True),
        ("a?b", "a/b", False),
        ("x[!y]z", "x/z", False),
    ],
)
def test_path_patterns(pattern, path, fits):
    assert PathGlob(pattern).fits(path) is fits


@given(st.text(st.sampled_from("ab*?[]{}!,\\/-^&~|#"), max_size=12), st.text(st.sampled_from("ab/*"), max_size=8))
def test_there_is_no_wrong_path_pattern(pattern, path):
    assert PathGlob(pattern).fits(path) in (True, False)


async def test_what_a_rule_keeps_from_being_read_is_in_no_search(tree):
    """A rule for a file holds also where the folder above it is searched."""
    tree.unreadable = lambda path: path.is_relative_to(tree.root / "src")
    text = await tree.run(GREP, pattern="needle")
    assert "src/" not in text
    assert "a.txt" in text
    assert text.endswith("\n[6 files were left out: a rule keeps them from being read]")
    assert "src/" not in await tree.run(GLOB, pattern="**/*")


async def test_glob_lists_sorted_paths_from_the_workspace(tree):
    assert await tree.run(GLOB, pattern="*.{py,md}") == "docs/y.md\nsrc/deep/z.py\nsrc/main.py"
    assert await tree.run(GLOB, pattern="*.py", path="src") == "src/deep/z.py\nsrc/main.py"
    assert await tree.run(GLOB, pattern=f"{tree.root}/src/*.py") == "src/main.py"
    assert await tree.run(GLOB, pattern="*.rs") == "No file below `.` fits `*.rs`."


async def test_glob_says_how_many_it_does_not_list(bench):
    for n in range(30):
        bench.put(f"{n:02}.txt", "")
    assert await bench.run(GLOB, pattern="*", limit=2) == (
        "00.txt\n01.txt\n[28 more of 30 not listed; narrow the pattern or raise `limit`]"
    )


@pytest.mark.parametrize(("path", "words"), [("nothing", "does not exist"), ("a.txt", "is not a folder")])
async def test_glob_in_what_is_no_folder_is_refused(tree, path, words):
    with pytest.raises(ToolFailed, match=words):
        await tree.run(GLOB, pattern="*", path=path)


async def test_names_that_are_no_text_are_shown_escaped(bench):
    (Path(os.fsdecode(os.fsencode(bench.root) + b"/b\xffd\n"))).write_text("needle")
    assert await bench.run(GLOB, pattern="b*") == "b\\udcffd\\n"
    assert await bench.run(GREP, pattern="needle") == "b\\udcffd\\n:1:needle"


async def test_grep_shows_context_and_joins_what_touches(bench):
    bench.put("f", "".join(f"{n}{' hit' if n in (2, 4, 9) else ''}\n" for n in range(1, 11)))
    assert await bench.run(GREP, pattern="hit", context=1) == (
        "f-1-1\nf:2:2 hit\nf-3-3\nf:4:4 hit\nf-5-5\n--\nf-8-8\nf:9:9 hit\nf-10-10"
    )


async def test_grep_counts_what_it_does_not_show(bench):
    bench.put("a", "hit\n" * 5)
    bench.put("b", "hit\n" * 5)
    assert await bench.run(GREP, pattern="hit", limit=3) == (
        "a:1:hit\na:2:hit\na:3:hit\n[7 more matching lines, 10 in all in 2 files; "
        "narrow the pattern, the path or `glob`]"
    )
    assert await bench.run(GREP, pattern="miss") == "Nothing below `.` matches `miss`."


async def test_grep_results_are_bounded_in_size(bench):
    bench.processes = RealProcesses()  # so much is worth asking ripgrep about
    bench.put("f", ("hit " + "x" * 3000 + "\n") * 2000)
    said = await bench.run(GREP, pattern="hit", limit=2000)
    assert len(said) < 42_000
    assert "2000 in all in 1 files" in said


async def test_grep_takes_files_in_every_encoding_and_passes_over_binary_ones(bench):
    bench.put("16", "\ufeffstraße\r\n".encode("utf-16-le"))
    bench.put("8", "straße\n")
    bench.put("latin", b"stra\xdfe \xdf")
    bench.put("binary", "straße\0".encode())
    assert await bench.run(GREP, pattern="stra.e$") == "16:1:straße\n8:1:straße"
    assert await bench.run(GREP, pattern="^stra.e ") == "latin:1:stra\ufffde \ufffd"


async def test_grep_only_where_the_glob_fits_and_in_one_file(tree):
    assert await tree.run(GREP, pattern="needle", glob="*.md") == "docs/y.md:1:needle in docs/y.md"
    assert await tree.run(GREP, pattern="needle", path="src", glob="!*.{log,txt}") == (
        "src/deep/generated:1:needle in src/deep/generated\nsrc/deep/z.py:1:needle in src/deep/z.py\n"
        "src/main.py:1:needle in src/main.py"
    )
    assert await tree.run(GREP, pattern="needle", path="a.log") == "a.log:1:needle in a.log"


async def test_a_long_line_is_shown_around_its_match(bench):
    bench.put("f", "x" * 5000 + "needle" + "y" * 7000)
    said = await bench.run(GREP, pattern="needle")
    assert re.fullmatch(
        r"f:1:\[\.\.\.\]x{100}needley{294}\[\.\.\. \d+ more\]\n"
        r"\[1 long lines were searched in their first 10000 characters\]",
        said,
    )


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("a(b", "missing \\), unterminated subpattern at character 2"), ("*", "at character 1"), (r"\h", "bad escape"),
     ("a{99999999999}", "too large")],
)  # fmt: skip
async def test_a_bad_pattern_is_explained(bench, pattern, words):
    with pytest.raises(ToolFailed, match=words):
        await bench.run(GREP, pattern=pattern)


async def test_a_pattern_that_would_never_end_is_stopped(bench, monkeypatch):
    monkeypatch.setattr(matches, "_PATIENCE", 0.1)
    bench.put("f", "a" * 60 + "b\n")
    with pytest.raises(ToolFailed, match="takes too long on `f`, somewhere in lines 1 to 1"):
        await bench.run(GREP, pattern="(a+)+$")
    assert await bench.run(GREP, pattern="a+b") == f"f:1:{'a' * 60}b"


def test_the_limit_on_time_leaves_no_trace():
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(CpuTimeOver), cpu_limit(0.02):
        re.search("(a+)+$", "a" * 60 + "b")
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("plain", "plain"),
        (r"def foo\(", "def foo("),
        ("colou?r", "colo"),
        ("ab*cd", "cd"),
        ("ab+cd", "ab"),
        ("ab{0,3}cde", "cde"),
        ("a|b", ""),
        ("(abc)?d", "d"),
        ("[abc]def", "def"),
        (r"\bword\b", "word"),
        (r"x\d+yz", "yz"),
        ("[]a]bc", "bc"),
        ("(?i)abc", ""),
    ],
)
def test_what_every_match_contains(pattern, literal):
    assert compiled(pattern, ignore_case=False).literal == literal


@given(
    st.lists(st.sampled_from(["a", "ab", "a?", "b*", "a+", ".", "[ab]", "(ab)", "(a|b)?", "a{0,2}", r"\.", "^", "$"]),
             min_size=1, max_size=6),
    st.text(st.sampled_from("ab."), max_size=12),
)  # fmt: skip
def test_nothing_that_matches_lacks_the_literal(pieces, text):
    search = compiled("".join(pieces), ignore_case=False)
    match = search.regex.search(text)
    assert match is None or search.literal in match[0]


async def test_a_search_can_be_cancelled(bench):
    for n in range(100):
        bench.put(f"{n}", "x\n" * 50)
    for tool in (GLOB, GREP):
        with trio.CancelScope() as scope:
            scope.cancel()
            await bench.run(tool, pattern="x")
        assert scope.cancelled_caught


@given(
    st.lists(st.sampled_from(["a", "b?", "^", "$", r"\b", r"\B", r"\A", r"\Z", r"\s*", "[^a]", "(?=a)", "(?!b)"]),
             min_size=1, max_size=5),
    st.text(st.sampled_from("ab \n"), max_size=14),
    st.booleans(),
)  # fmt: skip
def test_a_text_is_passed_over_only_where_no_line_matches(pieces, text, ignore_case):
    try:
        search = compiled("".join(pieces), ignore_case=ignore_case)
    except ToolFailed:
        return
    if any(search.regex.search(line) for line in text.split("\n")):
        assert search.may_be_in(text)
