"""Names, schemas, settings and lines of servers: everything that needs none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from novacode.app.settings import Places, load_settings
from novacode.app.trust import TrustedFolders
from novacode.errors import SettingsError
from novacode.mcp.checking import validator
from novacode.mcp.client import Listed
from novacode.mcp.config import ServerConfig, expanded, parse_servers
from novacode.mcp.lines import Lines
from novacode.mcp.names import server_names, tool_names
from novacode.mcp.peer import Peer
from novacode.mcp.tool import tools_of
from novacode.protocols.gemini_schema import gemini_schema
from novacode.tools.base import EVERYTHING, Claims
from novacode.tools.schema import InvalidArguments, schema_of, structure
from novacode.workspace.paths import Workspace

ODD = ("a.b/c", "a_b_c", "x" * 70 + "_read", "x" * 70 + "_write", "h\u00e9llo", "")


def offered(*listed: Listed) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the schemas of the tools that are offered, and the warnings."""
    tools, warnings = tools_of(("s", "s", 1.0), listed, Peer(lambda _: None), validator)
    return {tool.original: dict(schema_of(tool.spec.args)) for tool in tools}, warnings


def test_br_161_names_are_valid_distinct_and_the_same_in_any_order() -> None:
    short = server_names(["my.server/one"])["my.server/one"]
    names = tool_names(short, ODD)
    assert len(set(names.values())) == 5
    assert "" not in names
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
    assert tool_names(short, reversed(ODD)) == names
    assert names["a_b_c"] == "mcp__my_server_one__a_b_c"
    assert names["h\u00e9llo"] == "mcp__my_server_one__h_llo"


def test_a_rule_for_one_server_never_speaks_of_another() -> None:
    assert server_names(["a", "a__b", "a.b", "a_b"])["a_b"] == "a_b"
    assert len(set(server_names(["a", "a__b", "a.b", "a_b"]).values())) == 4
    assert not any("__" in name for name in server_names(["a__b", "___", "x" * 80]).values())


def test_br_160_each_schema_is_mended_or_left_out_by_name() -> None:
    whole = {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "string"}}}
    schemas, warnings = offered(
        Listed("t1", "", {"type": "string"}),
        Listed("t2", "", None),
        Listed("t3", "", {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}]}),
        Listed("t4", "", {"type": "object", "properties": {"ids": {"type": "array"}}}),
        Listed("t5", "", whole),
        Listed("t6", "", {"type": "object", "properties": {}}),
        Listed("", "", {"type": "object"}),
    )
    assert schemas == {
        "t2": {"type": "object", "properties": {}},
        "t3": {"type": "object", "properties": {"a": {"type": "string"}}},
        "t4": {"type": "object", "properties": {"ids": {"type": "array", "items": {}}}},
        "t5": {"type": "object", "properties": {"x": {"type": "string"}}},
        "t6": {"type": "object", "properties": {}},
    }
    assert [re.findall(r"'(t?\d?)'", one)[0] for one in warnings] == ["t1", "t2", "t3", ""]
    assert all(gemini_schema(schema)["type"] == "object" for schema in schemas.values())


def test_a_schema_that_refers_to_itself_or_elsewhere_comes_to_an_end() -> None:
    circle = {
        "type": "object",
        "properties": {"n": {"$ref": "#"}, "u": {"$ref": "https://example.org/s.json"}, "s": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/A"}},
    }
    schemas, _ = offered(Listed("t", "", circle))
    assert "$ref" not in json.dumps(schemas["t"])
    assert schemas["t"]["properties"]["u"] == {}


def test_arguments_are_held_to_the_schema_with_every_wrong_field() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "integer"}}, "required": ["x"]}
    (tool,), _ = tools_of(("s", "s", 1.0), [Listed("t", "", schema)], Peer(lambda _: None), validator)
    assert structure(tool.spec.args, {"x": "a"}) == {"x": "a"}
    with pytest.raises(InvalidArguments) as caught:
        structure(tool.spec.args, {"n": "one", "x": 1})
    assert sorted(problem.path for problem in caught.value.problems) == ["n", "x"]


def test_a_hint_that_a_tool_only_reads_lets_it_overlap_and_no_more(tmp_path: Path) -> None:
    listed = [Listed("r", "", {"type": "object"}, reads_only=True), Listed("w", "", {"type": "object"})]
    (reader, writer), _ = tools_of(("s", "s", 1.0), listed, Peer(lambda _: None), validator)
    space, everything = Workspace.at(tmp_path), frozenset({EVERYTHING})
    assert reader.claims({}, space) == Claims(reads=everything)
    assert writer.claims({}, space) == Claims(writes=everything)


def test_lines_are_the_same_however_the_bytes_are_cut() -> None:
    data = b'{"a": 1}\n\nnoise\n  {"b": 2}\r\n{"c"'
    for at in range(len(data)):
        lines = Lines()
        assert lines.feed(data[:at]) + lines.feed(data[at:]) == [b'{"a": 1}', b'{"b": 2}']
        assert lines.noise == 1
    long = Lines(longest=10)
    assert long.feed(b'{"0123456789"}\n{}\n') == [b"{}"]


def test_what_is_missing_in_the_environment_is_named_and_secrets_never_show() -> None:
    assert expanded({"A": "x ${K} ${L:-l}"}, {"K": "k"}, "e") == {"A": "x k l"}
    with pytest.raises(SettingsError, match=r"`e\.A` needs the environment variable K"):
        expanded({"A": "${K}"}, {}, "e")
    assert "hidden" not in repr(ServerConfig("s", url="http://x", headers={"Authorization": "hidden"}))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "either `command`"),
        ({"command": "a", "url": "http://b"}, "either `command`"),
        ({"command": 3}, "`command` is 3"),
        ({"command": "a", "args": "b"}, "`args` is 'b'"),
        ({"command": "a", "startup_timeout": 0}, "`startup_timeout` is 0"),
        ({"url": "ftp://x"}, "`url` is 'ftp://x'"),
        ({"command": "a", "env": {"K": 1}}, "`env` must be"),
    ],
)
def test_settings_that_cannot_be_used_say_where_and_what(table: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        parse_servers({"s": table}, "f.toml")


def test_servers_of_a_project_count_only_where_its_folder_is_trusted(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (home / "config.toml").write_text('[mcp_servers.mine]\ncommand = "a"\n')
    (project / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "b"}}}')
    places = Places(home, project)
    before = load_settings(places, {})
    assert [one.name for one in before.mcp_servers] == ["mine"]
    assert any(".mcp.json" in text and "not trusted" in text for text in before.warnings)
    TrustedFolders(home).add(project)
    after = load_settings(places, {})
    assert [(one.name, one.command) for one in after.mcp_servers] == [("mine", "a"), ("theirs", "b")]
    assert after.warnings == ()
