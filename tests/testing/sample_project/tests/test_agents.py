"""Three tests that pass, and one that shows what is wrong with an agent."""

from __future__ import annotations

import pytest
from sample_agents import Careful, Careless

from novacode.testing.agents import Wish
from novacode.testing.scripts import call, turn


def made(agent_class, assert_paired):
    def make():
        agent = agent_class()
        return agent.run, lambda: assert_paired(agent.messages)

    return make


def test_a_task_is_done_in_a_workspace(nova_agent, scripted_model, assert_paired, assert_nothing_left):
    model = scripted_model(turn("On it.", call("write", path="a.txt", content="hi")), "Done.")
    played = nova_agent.run_sync("write a.txt", model, Wish(mode="accept-edits"))
    assert (played.status, nova_agent.read("a.txt")) == ("completed", "hi")
    assert_paired(played)


@pytest.mark.trio
async def test_a_tape_is_played(nova_agent, scripted_model, tape):
    played = await nova_agent.run("hi", scripted_model("Hello."))
    assert played.text == "Hello."


def test_the_careful_agent_can_be_stopped_anywhere(every_step, assert_paired):
    every_step(made(Careful, assert_paired), seeds=3)


def test_the_careless_agent_can_be_stopped_anywhere(every_step, assert_paired):
    every_step(made(Careless, assert_paired))
