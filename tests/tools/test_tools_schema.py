"""Parameter classes: what a model is told, and what it is told when it is wrong."""

import enum
import math
from typing import Annotated, Any, Literal

import attrs
import jsonschema
import pytest
from attrs.validators import and_, ge, gt, le, max_len, min_len, optional
from hypothesis import given
from hypothesis import strategies as st

from novacode.tools.builtin import builtin_tools
from novacode.tools.schema import InvalidArguments, schema_of, structure
from novacode.tools.write import WriteArgs


class Colour(enum.StrEnum):
    RED = "red"
    GREEN = "green"


@attrs.frozen
class Inner:
    old: str
    new: str


@attrs.frozen
class Everything:
    path: Annotated[str, "where"]
    count: int = attrs.field(default=1, validator=[ge(1), le(10)])
    ratio: float = attrs.field(default=0.5, validator=gt(0))
    flag: bool = False
    mode: Literal["fast", "slow"] = "fast"
    colour: Colour = Colour.RED
    names: tuple[str, ...] = attrs.field(default=(), validator=max_len(3))
    edits: list[Inner] = attrs.Factory(list)
    table: dict[str, int] = attrs.Factory(dict)
    maybe: int | None = attrs.field(default=None, validator=optional(ge(0)))
    either: int | str = 0
    anything: Any = None
    word: str = attrs.field(default="x", validator=and_(min_len(1), max_len(5)))


def problems(arguments: dict[str, Any], cls: type = Everything) -> list[str]:
    with pytest.raises(InvalidArguments) as caught:
        structure(cls, arguments)
    return [str(problem) for problem in caught.value.problems]


def test_the_schema_says_all_that_the_class_does():
    assert schema_of(Everything) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where"},
            "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
            "ratio": {"type": "number", "exclusiveMinimum": 0, "default": 0.5},
            "flag": {"type": "boolean", "default": False},
            "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
            "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "names": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
            "table": {"type": "object", "additionalProperties": {"type": "integer"}},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}], "minimum": 0},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 0},
            "anything": {},
            "word": {"type": "string", "minLength": 1, "maxLength": 5, "default": "x"},
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_good_arguments_become_an_instance():
    given_ = {
        "path": "a",
        "count": 3,
        "ratio": 2,
        "colour": "green",
        "names": ["x"],
        "edits": [{"old": "a", "new": "b"}],
        "table": {"k": 1},
        "maybe": 4,
        "either": "text",
        "anything": [1, None],
    }
    assert structure(Everything, given_) == Everything(
        "a", 3, 2.0, colour=Colour.GREEN, names=("x",), edits=[Inner("a", "b")], table={"k": 1}, maybe=4,
        either="text", anything=[1, None],
    )  # fmt: skip


def test_every_problem_is_listed_with_its_place_its_value_and_what_was_expected():
    found = problems({"count": 11, "flag": "true", "mode": "fats", "edits": [{"old": 5}], "pth": "a", "names": "[]"})
    assert found == [
        "`pth` is not a parameter; did you mean `path`? There are: `path`, `count`, `ratio`, `flag`, `mode`, `colour`, "
        "`names`, `edits`, `table`, `maybe`, `either`, `anything`, `word`",
        "`path` is missing; it must be a string: where",
        "`count` is 11; it must be an integer, at least 1 and at most 10",
        '`flag` is "true"; it must be true or false, without quotes',
        '`mode` is "fats"; it must be one of "fast", "slow"; did you mean "fast"?',
        '`names` is "[]"; it must be a list: send the list itself, not its JSON as a string',
        "`edits[0].old` is 5; it must be a string",
        "`edits[0].new` is missing; it must be a string",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("path", 5),
        ("path", None),
        ("path", ["a"]),
        ("count", True),
        ("count", "3"),
        ("count", 3.5),
        ("count", 1e300),
        ("ratio", math.nan),
        ("ratio", math.inf),
        ("ratio", True),
        ("flag", 1),
        ("maybe", -1),
        ("maybe", "1"),
        ("either", 1.5),
        ("word", ""),
        ("word", "longer"),
        ("names", ["a", "b", "c", "d"]),
        ("names", ["a", 1]),
        ("table", {"k": "1"}),
        ("edits", {"old": "a", "new": "b"}),
    ],
)
def test_nothing_is_turned_into_another_type(name, value):
    found = problems({"path": "a"} | {name: value})
    assert len(found) == 1
    assert found[0].startswith(f"`{name}")


def test_a_whole_number_written_with_a_point_is_an_integer_as_in_json_schema():
    made = structure(Everything, {"path": "a", "count": 3.0})
    assert made.count == 3
    assert type(made.count) is int


def test_null_for_a_parameter_that_has_a_default_means_not_given():
    assert structure(Everything, {"path": "a", "count": None, "names": None}) == Everything("a")


def test_br_071_a_missing_or_null_required_text_is_an_error_and_an_empty_one_is_not():
    assert problems({"path": "keep.txt"}, WriteArgs) == [
        "`content` is missing; it must be a string: all the file shall hold; may be empty"
    ]
    assert problems({"path": "keep.txt", "content": None}, WriteArgs) == ["`content` is null; it must be a string"]
    assert structure(WriteArgs, {"path": "keep.txt", "content": ""}) == WriteArgs("keep.txt", "")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("file_path", "path"), ("filePath", "path"), ("old_string", "old"), ("replaceAll", "replace_all")],
)
def test_names_that_other_agents_use_are_recognised_in_the_message(name, meant):
    edit = builtin_tools(lambda _: False)[2].spec.args
    assert f"did you mean `{meant}`?" in " ".join(problems({"path": "a", "old": "b", "new": "c"} | {name: "x"}, edit))


def test_a_long_wrong_value_is_cut():
    [found] = problems({"path": "a", "count": "9" * 10_000})
    assert len(found) < 200
    assert "(10002 characters)" in found


def test_the_text_says_that_nothing_was_executed():
    with pytest.raises(
        InvalidArguments, match=r"^One problem with the arguments; nothing was executed\.\n- `path` is 5"
    ):
        structure(Everything, {"path": 5})


def test_a_validator_of_the_class_itself_is_heard():
    @attrs.frozen
    class Picky:
        name: str

        def __attrs_post_init__(self) -> None:
            if self.name == "bad":
                raise ValueError("`name` may not be bad")

    assert problems({"name": "bad"}, Picky) == ["`arguments` cannot be used; `name` may not be bad"]


def test_a_type_without_a_form_in_json_is_a_mistake_of_the_tool():
    @attrs.frozen
    class Odd:
        when: complex = 0j

    with pytest.raises(TypeError, match="complex"):
        schema_of(Odd)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.sampled_from(["", "a", "fast", "red", "toolong"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["old", "new"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
arguments = st.fixed_dictionaries(
    {"path": st.just("p") | values},
    optional={field.name: values for field in attrs.fields(Everything) if field.name != "path"},
)


@given(arguments)
def test_the_check_and_the_schema_agree(given_):
    """An independent validator is the judge; the one difference is `null`, which stands for a default."""
    schema = schema_of(Everything)
    sent = {name: value for name, value in given_.items() if value is not None or name in ("path", "maybe", "anything")}
    valid = jsonschema.Draft202012Validator(schema).is_valid(sent)
    try:
        structure(Everything, given_)
    except InvalidArguments:
        accepted = False
    else:
        accepted = True
    assert accepted == valid


@pytest.mark.parametrize("tool", builtin_tools(lambda _: False), ids=lambda tool: tool.spec.name)
def test_the_schemas_of_the_built_in_tools_are_schemas(tool):
    jsonschema.Draft202012Validator.check_schema(schema_of(tool.spec.args))
