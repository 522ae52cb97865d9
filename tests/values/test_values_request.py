"""One meaning of token counts for all providers."""

from __future__ import annotations

import pytest

from novacode.values.request import Usage


@pytest.mark.parametrize(
    ("usage", "prompt", "fresh", "completion"),
    [
        (Usage(), 0, 0, 0),
        (Usage(100, 7, cache_read=90, cache_write=5, reasoning=3), 100, 10, 7),
        (Usage(10, 7, cache_read=90, cache_write=5, input_counts_cache=False), 105, 15, 7),
        (Usage(10, 7, reasoning=30, output_counts_reasoning=False), 10, 10, 37),
        (Usage(10, cache_read=90), 10, 0, 0),
        (
            Usage(None, None, cache_read=3, reasoning=2, input_counts_cache=False, output_counts_reasoning=False),
            3,
            0,
            2,
        ),
    ],
)
def test_derived_counts(usage: Usage, prompt: int, fresh: int, completion: int) -> None:
    """Cached tokens inside or beside the input, reasoning inside or beside the output, or nothing reported."""
    assert (usage.prompt, usage.fresh, usage.completion) == (prompt, fresh, completion)
