"""Several hooks, one answer."""

from __future__ import annotations

import pytest

from novacode.authority.hook_verdict import View, answer_of, merged
from novacode.authority.hook_wire import HookSaid
from novacode.authority.hooks import HookAnswer, HookWord
from novacode.values.ids import CallId
from novacode.values.parts import ToolCall


def call(**arguments):
    return ToolCall(CallId("a"), 0, "shell", arguments)


def wants(name, **arguments):
    return View(name, HookSaid(), call(**arguments))


def said(word, reason="", context=""):
    return View("h", HookSaid(word, reason, context=context), call())


NO, ASK, YES, PASS = HookWord.DENY, HookWord.ASK, HookWord.ALLOW, HookWord.PASS


@pytest.mark.parametrize(
    ("views", "answer"),
    [
        ([], HookAnswer(call())),
        ([said(PASS), said(YES, "y")], HookAnswer(call(), YES, "y")),
        ([said(YES, "y"), said(ASK, "a"), said(PASS)], HookAnswer(call(), ASK, "a")),
        ([said(YES), said(NO, "n"), said(ASK), said(NO, "m"), said(NO, "n")], HookAnswer(call(), NO, "n; m")),
        ([said(PASS, context="1"), said(YES, context="2")], HookAnswer(call(), YES, "", "1\n2")),
    ],
)
def test_deny_beats_ask_beats_allow(views, answer):
    assert answer_of(call(), views) == answer


def test_nobody_rewrites():
    made = call(a=1)
    assert merged(made, [wants("h", a=1)]) is made


def test_one_rewrite_is_taken_as_it_is():
    assert merged(call(a=1, b=2), [wants("h", a=1, b=2), wants("g", b=3)]) == call(b=3)


def test_rewrites_of_different_keys_are_put_together():
    before = call(a=1, b=2, c=3)
    views = [wants("f", a=9, b=2, c=3), wants("g", a=1, b=2, c=3, d=4), wants("h", a=1, c=3)]
    assert merged(before, views) == call(a=9, c=3, d=4)


def test_the_same_rewrite_twice_is_one():
    assert merged(call(a=1), [wants("f", a=2), wants("g", a=2), wants("h", a=2)]) == call(a=2)
    assert merged(call(a=1, b=1), [wants("f", b=1), wants("g", b=1)]) == call(b=1)


@pytest.mark.parametrize("other", [{"a": 3}, {}])
def test_two_that_contradict_each_other_are_no_rewrite(other):
    with pytest.raises(ValueError, match="the hooks `f` and `g` want different values for 'a'"):
        merged(call(a=1), [wants("f", a=2), wants("g", **other)])
