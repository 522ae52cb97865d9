"""Rules of the house that a linter does not know, held by reading the source."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "novacode").rglob("*.py"))

LONG_MODULES: dict[str, str] = {
    "novacode/values/events.py": "the event family: small classes that are known by heart together",
}
"""Modules over 300 lines, each with the reason why it is one subject."""

SHIELDED_INSIDE = {
    ("novacode/app/wiring.py", "_opened"): "`_say_goodbye` shields and bounds its two awaits",
    ("novacode/engine/run.py", "_to_the_end"): "`_close` shields its one await and bounds it",
    ("novacode/workspace/processes.py", "run"): "the two helpers it awaits shield and bound themselves",
    ("novacode/lab/asyncio_reference.py", "run"): "asyncio has no bounded shield: this is what trio is compared with",
    ("novacode/lab/asyncio_reference.py", "turn"): "as above",
    ("novacode/lab/asyncio_variants.py", "turn"): "as above",
}
"""Functions that await in a clean-up without a visible `cleanup(...)`, each with the reason."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_modules_are_one_subject() -> None:
    """Nothing over 300 lines without a reason, and no reason for what is shorter."""
    long = {_name(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > 300}
    assert long == set(LONG_MODULES)


def test_shields_exist_in_one_module() -> None:
    """A shield has a deadline and a name; only `grace.py` makes one."""
    found = {
        _name(path)
        for path in MODULES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.keyword) and node.arg == "shield"
    }
    assert found == {"novacode/grace.py"}


def test_clean_up_that_awaits_is_bounded() -> None:
    """An `await` in `finally` or `except BaseException` stands inside `cleanup(...)`."""
    found = {(_name(path), function) for path in MODULES for function in _unbounded(_tree(path))}
    assert found == set(SHIELDED_INSIDE)


def _unbounded(tree: ast.Module) -> Iterator[str]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Try) and any(_awaits(part) for part in _clean_ups(node)):
                yield function.name


def _clean_ups(node: ast.Try) -> Iterator[list[ast.stmt]]:
    yield node.finalbody
    for handler in node.handlers:
        caught = "" if handler.type is None else ast.unparse(handler.type)
        if handler.type is None or caught in ("BaseException", "trio.Cancelled"):
            yield handler.body


def _awaits(body: list[ast.stmt]) -> bool:
    """Whether an await can be reached without going through `with cleanup(...)`."""
    for statement in body:
        if isinstance(statement, ast.With) and any("cleanup(" in ast.unparse(item) for item in statement.items):
            continue
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nested = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
        if nested and _awaits(nested):
            return True
        own = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
        if any(isinstance(node, ast.Await) for child in own for node in ast.walk(child)):
            return True
        if isinstance(statement, ast.AsyncFor | ast.AsyncWith):
            return True
    return False


@pytest.mark.parametrize("path", [path for path in MODULES if path.name != "__main__.py"], ids=_name)
def test_public_names_are_listed(path: Path) -> None:
    """`__all__` is there where anything is public, sorted as ruff sorts it, and every name in it exists."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    listed = getattr(module, "__all__", [])
    assert [name for name in listed if not hasattr(module, name)] == []
    assert len(listed) == len(set(listed))
