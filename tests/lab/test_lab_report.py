"""The page about what the lab has found: everything is in it, nothing is loaded, nothing can be smuggled in."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from novacode.cli.lab_faults_cmd import command as faults_command
from novacode.cli.lab_report_cmd import command
from novacode.errors import InputError
from novacode.lab.compare import TRIO, compare
from novacode.lab.faults import FAULTS
from novacode.lab.perform import perform
from novacode.lab.point import How, Point, Row, Violation
from novacode.lab.report import Wish, report_page
from novacode.lab.report_data import (
    Data,
    Tried,
    broken,
    by_phase,
    chosen_runs,
    family,
    maps_of,
    read_data,
    tried_faults,
)

EXECUTORS = (TRIO, "asyncio", "no-cancel")


def explored() -> list[Row]:
    steps = (None, *range(1, 40, 3))
    return [perform(Point("parallel", seed, step=step)) for seed in (0, 1) for step in steps]


def a_row(**more: object) -> Row:
    point = {"scenario": "parallel", "seed": 0, "how": How.RUN, "step": 3}
    own = {"steps": 9, "status": "cancelled", "reason": "x", "struck_at": 0.0, "quiet_at": 0.5, "phase": "running"}
    for key, value in more.items():
        (point if key in point or key == "fault" else own)[key] = value
    return Row(Point(**point), **own)


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("rows")
    rows = write(folder / "rows.jsonl", [row.dump() for row in explored()])
    compared = [row.dump() for name in EXECUTORS for row in compare("parallel", name)]
    return report_page(read_data([rows, write(folder / "compared.jsonl", compared)]))


class _Strict(HTMLParser):
    """Fails where a tag is closed that is not open, and collects what could load or run something."""

    void = ("meta", "br", "rect", "line", "path")
    shapes = ("rect", "path", "line")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in self.void or tag in self.shapes:
            self.open.append(tag)
        self.loads += [f"{tag} {name}" for name, _ in attributes if name in ("src", "href") or name.startswith("on")]

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in self.void

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(page: str) -> None:
    parser = _Strict()
    parser.feed(page)
    assert (parser.open, parser.loads) == ([], [])
    assert "<script" not in page
    assert re.findall(r"https?://", page) == []
    assert "default-src 'none'" in page


def test_it_has_every_part(page: str) -> None:
    for heading in ("Violations", "Runs, drawn", "Outcomes by step and seed", "From the request to quiet", "asyncio"):
        assert heading in page
    assert "The runtime itself broke nothing." in page
    assert "novacode lab compare parallel --executor no-cancel" in page


def test_every_drawing_has_a_name_and_the_same_in_words(page: str) -> None:
    """Bars of one number each are in the table of executors; all others have a table of their own beside them."""
    drawings = re.findall(r"<svg viewBox[^>]*>", page)
    assert drawings
    assert all('role="img" aria-label="' in drawing for drawing in drawings)
    assert page.count("<summary>The same as a table") == sum(
        not re.search("Latency|Tasks left behind|Late effects", drawing) for drawing in drawings
    )


def test_it_tells_the_mutation_score() -> None:
    bad = (Violation("gate", "no"),)
    rows = [a_row(fault="gate-ignored", violations=bad), a_row(fault="gate-ignored"), a_row(fault="no-means-yes")]
    assert tried_faults([*rows, a_row()]) == [
        Tried("no-means-yes", 1, 0, ()),
        Tried("gate-ignored", 2, 1, ("gate",)),
    ]
    page = report_page(Data(("rows",), tuple(rows)), Wish(timelines=0))
    assert f"1 of 2 found: mutation score 50%. {len(FAULTS) - 2} more of the catalogue were not tried." in page
    assert "survived" in page


def test_faults_leave_rows_for_the_score(tmp_path: Path) -> None:
    out = tmp_path / "faults.jsonl"
    result = CliRunner().invoke(faults_command, ["gate-ignored", "--out", str(out)], standalone_mode=False)
    assert (result.return_value, result.exception) == (0, None)
    assert tried_faults(read_data([out]).rows) == [Tried("gate-ignored", 1, 1, ("gate",))]


def test_where_runs_were_stopped_is_in_the_table_of_violations() -> None:
    bad = (Violation("alive", "one"), Violation("alive", "another"))
    rows = [
        a_row(violations=bad),
        a_row(step=4, violations=bad),
        a_row(step=None, struck_at=None, phase="", violations=bad),
    ]
    (found,) = broken(Data((), tuple(rows)))
    assert (found.runs, dict(found.phases)) == (3, {"running": 2, "its own end": 1})
    assert "running 2, its own end 1" in report_page(Data(("rows",), tuple(rows)), Wish(timelines=0))


def test_a_run_stopped_from_outside_shows_when() -> None:
    """Nothing in a journal tells of a cancellation from outside before the end; the row does."""
    row = perform(Point("slow-cleanup", how=How.OUTSIDE, step=27))
    page = report_page(Data(("rows",), (row,)), Wish(timelines=1))
    assert f"stopping, {row.struck_at:g} s to" in page


def test_a_run_with_a_fault_is_drawn_with_it() -> None:
    row = perform(Point("asking", fault="completion-order"))
    assert row.violations
    page = report_page(Data(("rows",), (row,)), Wish(timelines=1))
    assert "asking: it broke something" in page


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fan-out?takes=exp(2)&draw=7", "fan-out?takes=exp(2)"),
        ("fan-out?draw=7", "fan-out"),
        ("fan-out?calls=2", "fan-out?calls=2"),
        ("my.toml", "my.toml"),
    ],
)
def test_variants_that_differ_in_what_was_drawn_are_one_family(name: str, told: str) -> None:
    assert family(name) == told


def many_rows(number: int) -> tuple[Row, ...]:
    """As many different runs as a sweep has: a variant and a duration for each."""
    return tuple(
        a_row(
            scenario=f"fan-out?takes=exp({at % 50 + 1})&draw={at}",
            seed=at,
            step=at % 400 + 1,
            quiet_at=(at * 7919 % number) / 1000,
            phase=("running", "cleanup", "queued")[at % 3],
            status=("cancelled", "completed")[at % 5 == 0],
        )
        for at in range(number)
    )


@pytest.mark.parametrize("number", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_page_does_not_grow_with_its_rows(number: int) -> None:
    """Ten times the runs are a page that is hardly larger: drawings show what can be told apart."""
    small, large = (len(report_page(Data(("rows",), many_rows(n)), Wish(timelines=0))) for n in (number, 10 * number))
    assert large < 1.5 * small
    assert large < 2_000_000


def test_the_same_rows_give_the_same_page() -> None:
    data = Data(("rows.jsonl",), tuple(explored()))
    assert report_page(data) == report_page(data)


def test_what_scenarios_and_violations_say_is_shown_as_text() -> None:
    evil = "<script>alert(1)</script>\"'&"
    row = a_row(scenario=evil, violations=(Violation("pairing", evil),))
    page = report_page(Data((evil,), (row,)), Wish(evil))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_a_run_whose_scenario_is_gone_is_told_and_not_drawn() -> None:
    page = report_page(Data(("rows",), (a_row(scenario="gone.toml"),)))
    assert "it cannot be drawn" in page


def test_violations_of_the_runtime_come_first() -> None:
    bad = (Violation("pairing", "lost one"),)
    rows = (a_row(fault="retry", violations=bad), a_row(violations=bad), a_row(step=4, violations=bad))
    found = broken(Data((), rows))
    assert [(item.where, item.runs, item.own) for item in found] == [
        ("parallel", 2, True),
        ("planted fault retry", 1, False),
    ]


def test_a_map_has_the_worst_of_each_step_and_the_way_with_most_runs() -> None:
    rows = [
        a_row(step=1, how=How.CALL),
        a_row(step=1),
        a_row(step=2, violations=(Violation("order", "no"),)),
        a_row(step=2, status="completed"),
        a_row(step=3, struck_at=None),
        a_row(step=None),
    ]
    (found,) = maps_of(rows)
    assert (found.how, found.cells) == (How.RUN, {(0, 1): "cancelled", (0, 2): "violated"})


def test_latencies_are_sorted_by_phase() -> None:
    rows = [a_row(quiet_at=2.0), a_row(quiet_at=1.0), a_row(phase="cleanup"), a_row(struck_at=None, phase="")]
    assert by_phase(rows) == {"cleanup": [0.5], "running": [1.0, 2.0]}


def test_the_runs_that_are_drawn_are_different_ones() -> None:
    rows = [a_row(step=step, quiet_at=0.1 * step) for step in range(1, 10)]
    chosen = chosen_runs([*rows, a_row(step=None, struck_at=None, quiet_at=None)], 5)
    assert [(row.point.step, why) for why, row in chosen] == [
        (9, "it took longest to stop"),
        (5, "of the runs with tools under way, half stopped sooner"),
        (None, "nobody stopped it"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"scenario": 1}\n', "line 1 is no row of the lab"),
        ("", "there is no row in"),
        ("half a line", "there is no row in"),
    ],
)
def test_files_that_hold_no_rows_are_named(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read_data([file])


def test_runs_in_real_time_are_told_apart(tmp_path: Path) -> None:
    """They are neither drawn again in simulation nor mixed with virtual seconds; their violations count."""
    slow = a_row(step=None, quiet_at=0.07, scenario="fan-out?draw=1", violations=(Violation("alive", "a daemon"),))
    file = write(tmp_path / "rows.jsonl", [slow.dump() | {"real": True}, a_row().dump() | {"real": False}])
    data = read_data([file])
    assert (data.rows, data.real) == ((a_row(),), (slow,))
    page = report_page(data)
    assert "fan-out, in real time" in page
    assert "nothing does exactly this again" in page
    assert page.count('aria-label="Latency by phase') == 2


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl cannot be read: No such file"):
        read_data([tmp_path / "none.jsonl"])


def test_the_command_writes_the_page_and_says_where(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.jsonl", [row.dump() for row in explored()[:3]])
    out = tmp_path / "page.html"
    result = CliRunner().invoke(command, [str(rows), "--out", str(out), "--title", "Mine"])
    assert (result.exit_code, str(out) in result.output) == (0, True)
    assert "<title>Mine</title>" in out.read_text()


_SMALLEST = """Math.min(...[...document.querySelectorAll("main *")].filter(e => e.firstChild?.nodeType === 3)
  .map(e => parseFloat(getComputedStyle(e).fontSize)
    * (e.ownerSVGElement ? e.ownerSVGElement.getScreenCTM().a : 1)))"""
"""The smallest letters on the page, in pixels as they are drawn."""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_it_without_complaint(page: str, tmp_path: Path, scheme: str, width: int) -> None:
    """Nothing is asked for, nothing is complained about, nothing sticks out of the page."""
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright to drive a browser")
    if browser_path is None:
        pytest.skip("needs chromium on the PATH")
    file = tmp_path / "page.html"
    file.write_text(page)
    with playwright.sync_playwright() as drive:
        browser = drive.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        said: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: said.append(request.url))
        tab.goto(file.as_uri())
        over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        smallest = tab.evaluate(_SMALLEST)
        browser.close()
    assert (said, over) == ([file.as_uri()], 0)
    assert smallest >= 11, f"{smallest} px is too small to read"
