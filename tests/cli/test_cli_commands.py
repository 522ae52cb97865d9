"""The commands that only look: tools, models, permissions explain, decode."""

import json

import pytest
from click.testing import CliRunner

from novacode.cli import decode_cmd, models_cmd, permissions_cmd, tools_cmd
from novacode.errors import UsageError
from novacode.protocols.summary import PROTOCOLS


@pytest.fixture
def run(tmp_path, monkeypatch):
    for name in ("HOME", "NOVACODE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    def invoke(command, *arguments, stdin=None, code=0):
        result = CliRunner().invoke(command, arguments, input=stdin, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return invoke


def test_tools_with_their_schemas(run):
    rows = json.loads(run(tools_cmd.command, "--json").stdout)
    assert {"read", "write", "edit", "glob", "grep", "shell"} <= {row["name"] for row in rows}
    assert all(row["description"] and row["schema"]["type"] == "object" for row in rows)


def test_tools_for_people(run):
    text = run(tools_cmd.command).stdout
    assert "\nshell  " in text
    assert "  command: string" in text
    assert "  timeout?: number" in text


def test_models_say_which_key_is_there_and_never_show_it(run, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    text = run(models_cmd.command).stdout
    assert "key in ANTHROPIC_API_KEY" in text
    assert "secret" not in text + run(models_cmd.command, "--json").stdout


def test_models_of_one_provider(run):
    rows = json.loads(run(models_cmd.command, "anthropic", "--json").stdout)
    assert rows
    assert all(row["model"].startswith("anthropic/") for row in rows)
    with pytest.raises(UsageError, match="no provider 'antropic'"):
        run(models_cmd.command, "antropic")


def explain(run, tmp_path, *arguments):
    return json.loads(run(permissions_cmd.command, "explain", "--json", "-C", str(tmp_path), *arguments).stdout)


@pytest.mark.parametrize(
    ("flags", "decision", "rule", "source"),
    [
        ([], "ask", None, "mode default"),
        (["--allow", "shell(git push)"], "allow", "shell(git push)", "--allow"),
        (["--allow", "shell", "--deny", "Bash(git push:*)"], "deny", "shell(git push:*)", "--deny"),
        (["--permission-mode", "bypassPermissions", "--ask", "shell(git *)"], "ask", "shell(git *)", "--ask"),
    ],
)
def test_the_rule_that_decides_is_named(run, tmp_path, flags, decision, rule, source):
    told = explain(run, tmp_path, *flags, "shell(git push)")
    assert (told["decision"], told["rule"], told["source"]) == (decision, rule, source)
    assert [command["text"] for command in told["commands"]] == ["git push"]


@pytest.mark.parametrize(
    ("flags", "call", "decision"),
    [
        ([], "fetch(https://example.org/a)", "ask"),
        (["--allow", "fetch(domain:example.org)"], "fetch(https://example.org/a)", "allow"),
        (["--allow", "fetch(domain:example.org)"], "fetch(https://example.com/a)", "ask"),
        (["--deny", "fetch(domain:example.org)"], "WebFetch(https://www.example.org)", "deny"),
        ([], "fetch(https://[x)", "ask"),
        ([], "nosuch(x)", "ask"),
        (["--permission-mode", "plan"], "nosuch(x)", "deny"),
        ([], "read(a)", "allow"),
    ],
)
def test_of_a_tool_that_is_not_there_nothing_is_taken_for_harmless(run, tmp_path, flags, call, decision):
    assert explain(run, tmp_path, *flags, call)["decision"] == decision


def test_a_rule_from_a_file_is_named_with_its_line(run, tmp_path):
    (tmp_path / ".novacode").mkdir()
    file = tmp_path / ".novacode" / "config.toml"
    file.write_text('[permissions]\ndeny = [\n  "edit(src/**)",\n]\n')
    told = explain(run, tmp_path, "edit(src/a.py)")
    assert (told["decision"], told["rule"], told["source"]) == ("deny", "edit(src/**)", f"{file}:3")


def test_br_151_warnings_do_not_get_into_the_json(run, tmp_path):
    (tmp_path / ".novacode").mkdir()
    (tmp_path / ".novacode" / "config.toml").write_text('modell = "x"\n')
    result = run(permissions_cmd.command, "explain", "--json", "-C", str(tmp_path), "read(a)")
    json.loads(result.stdout)
    assert "`modell` is not a setting" in result.stderr


def test_explaining_to_people_shows_what_acts_on_a_terminal(run, tmp_path):
    text = run(permissions_cmd.command, "explain", "-C", str(tmp_path), "shell(touch \x1b[2K)").stdout
    assert text.startswith("ask: ")
    assert "\x1b" not in text


CHAT = (
    'data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant",'
    '"content":"Hé"},"finish_reason":null}]}\n\n'
    'data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},'
    '"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n'
)


@pytest.mark.parametrize("chunk", ["1", "7", "100000"])
def test_a_reply_is_decoded_whatever_the_chunks(run, chunk):
    body = (CHAT + "data: [DONE]\n\n").encode()
    lines = run(decode_cmd.command, "--protocol", "openai-chat", "--chunk", chunk, stdin=body).stdout.splitlines()
    told = [json.loads(line) for line in lines]
    assert [one["type"] for one in told][-1] == "finished"
    assert "".join(one["text"] for one in told if one["type"] == "text_delta") == "Hé"


def test_a_summary_is_one_object(run, tmp_path):
    body = tmp_path / "body.sse"
    body.write_text(CHAT + "data: [DONE]\n\n")
    told = json.loads(run(decode_cmd.command, "--protocol", "openai-chat", "--summary", str(body)).stdout)
    assert (told["text"], told["stop"], told["error"]) == ("Hé", "end", None)
    assert (told["usage"]["input"], told["usage"]["output"]) == (3, 1)


def test_a_cut_reply_shows_what_came_and_ends_with_1(run):
    body = CHAT.split("\n\n", 1)[0] + "\n\n"
    result = run(decode_cmd.command, "--protocol", "openai-chat", stdin=body.encode(), code=1)
    assert '"text_delta"' in result.stdout
    assert "RemoteProtocolError" in result.stderr
    summary = run(decode_cmd.command, "--protocol", "openai-chat", "--summary", stdin=body.encode())
    assert json.loads(summary.stdout)["error"]


def test_an_unknown_protocol_names_those_there_are(run):
    with pytest.raises(UsageError, match=next(iter(PROTOCOLS))):
        run(decode_cmd.command, "--protocol", "telex", stdin=b"")
