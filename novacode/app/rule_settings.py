"""Permission rules as settings hold them: a text, or a table with examples that are tried when it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from novacode.app.shell_lines import analyse
from novacode.authority.rules import Rule, parse_rule
from novacode.errors import SettingsError
from novacode.values.parts import JSON
from novacode.workspace.paths import Workspace

__all__ = ["RulePlace", "read_rules", "rule_of"]

_FIELDS = ("match", "not_match")


@attrs.frozen(eq=False, repr=False)
class RulePlace:
    """Where rules were found. `at` gives the file and line of a text in it; paths of examples start at `folder`."""

    decision: str
    at: Callable[[str], str]
    folder: Path


def read_rules(items: JSON) -> tuple[JSON, ...]:
    """Return the rules of a list, each a text or a table. Raises `ValueError` for anything else."""
    if not isinstance(items, list | tuple):
        raise ValueError
    return tuple(_item(item) for item in items)


def rule_of(item: JSON, place: RulePlace) -> Rule:
    """Return the rule of one item of `read_rules`.

    Raises `SettingsError` for one that is none, and for one that does not do with its examples what they say.
    """
    if isinstance(item, str):
        return parse_rule(item, place.decision, place.at(item))
    rule = parse_rule(item["rule"], place.decision, place.at(item["rule"]))
    if any(item[field] for field in _FIELDS):
        _try(rule, item, place)
    return rule


def _try(rule: Rule, item: Mapping[str, JSON], place: RulePlace) -> None:
    from novacode.authority.rule_examples import wrong_example  # 12 ms, and few rules have examples

    workspace = Workspace.at(place.folder)
    for field in _FIELDS:
        for text in item[field]:
            wrong = wrong_example(rule, text, workspace, analyse, should_match=field == "match")
            if wrong is not None:
                raise SettingsError(
                    f"{rule.source}: the {rule.decision} rule {rule.text!r} has a wrong example: under `{field}`,"
                    f" {wrong}. Mend the rule or the example"
                )


def _item(item: JSON) -> JSON:
    if isinstance(item, str) and item.strip():
        return item
    if not isinstance(item, Mapping) or not {"rule"} <= item.keys() <= {"rule", *_FIELDS}:
        raise ValueError
    return {"rule": _text(item["rule"]), **{field: _texts(item.get(field, ())) for field in _FIELDS}}


def _texts(value: JSON) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ValueError
    return tuple(_text(item) for item in items)


def _text(value: JSON) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value
