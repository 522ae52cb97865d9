"""What the settings of a session say to its runs: how far they may go, what they put up with, what they begin with."""

from __future__ import annotations

import random  # noqa: TID251 - the one generator of a session is made here, seeded where that is wanted
import sys
from typing import TYPE_CHECKING

from novacode.app.settings import Settings
from novacode.engine.agent import AgentOptions
from novacode.engine.gate import Overlap
from novacode.engine.limits import Limits
from novacode.engine.patience import Retry
from novacode.engine.prompt import Prompt
from novacode.models.backoff import GiveUp, RetryLimits, Stage, Wait, decide
from novacode.models.catalog import context_window, cost_usd
from novacode.values.failure import Failure
from novacode.values.request import Usage

if TYPE_CHECKING:
    from novacode.app.choosing import Choice
    from novacode.app.setup import Setup

__all__ = ["agent_options", "prompt_of", "retry_of", "unheld"]


def agent_options(setup: Setup, choice: Choice, *, somebody: bool) -> AgentOptions:
    """Return how the agent of a session runs; `somebody` is whether questions are answered."""
    settings = setup.settings

    def cost(usage: Usage) -> float | None:
        return None if choice.scripted else cost_usd(choice.label, usage)

    return AgentOptions(
        limits=Limits(
            max_turns=settings.max_turns,
            max_seconds=settings.max_seconds,
            max_output_tokens=settings.max_output_tokens,
            max_budget_usd=settings.max_budget_usd,
        ),
        overlap=Overlap(settings.overlap),
        somebody=somebody,
        model=choice.label,
        cost=cost,
        window=settings.context_window or (None if choice.scripted else context_window(choice.label)),
    )


def unheld(settings: Settings, choice: Choice) -> tuple[str, ...]:
    """Say which limit cannot be held."""
    if settings.max_budget_usd is None or choice.scripted or cost_usd(choice.label, Usage(1, 1)) is not None:
        return ()
    return (f"the price of {choice.label} is not known, so --max-budget-usd cannot be held",)


def prompt_of(setup: Setup, instructions: str) -> Prompt:
    """Return what the model is told before anything else."""
    settings = setup.settings
    return Prompt(str(setup.cwd), sys.platform, instructions, settings.system_prompt, settings.append_system_prompt)


def retry_of(settings: Settings, seed: int | None) -> Retry:
    """Return how lost requests are tried again; with a seed, always after the same delays."""
    chance = random.Random(seed)
    limits = RetryLimits(settings.retries, settings.stream_retries)

    def retry(stage: Stage, times: int, failure: Failure) -> Wait | GiveUp:
        return decide(stage, times, failure, chance.random(), limits)

    return retry
