"""What `docs/protocols.md` lists is what there is."""

from pathlib import Path

import pytest

from novacode.models.catalog import PROVIDERS
from novacode.protocols.quirks import QUIRKS
from novacode.protocols.summary import PROTOCOLS
from novacode.values.failure import FailureKind
from novacode.values.request import StopReason

PAGE = (Path(__file__).parents[2] / "docs" / "protocols.md").read_text("utf-8")


@pytest.mark.parametrize("listed", [PROVIDERS, QUIRKS, PROTOCOLS, list(FailureKind), list(StopReason)], ids=len)
def test_the_page_leaves_none_out(listed):
    assert [str(name) for name in listed if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("name", sorted(QUIRKS))
def test_dialects_are_described_as_they_are(name):
    quirks = QUIRKS[name]
    table = PAGE.partition("## Dialects")[2].partition("## Providers")[0]
    [row] = [line for line in table.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1]]
    if "defaults under a name" in row:
        return
    limit, role, usage, back, ids = [cell.strip() for cell in row.split("|")[2:7]]
    assert (limit, role) == (f"`{quirks.token_limit}`", f"`{quirks.system_role}`")
    assert usage == ("yes" if quirks.stream_options else "no")
    assert back == (f"`{quirks.reasoning_back}`" if quirks.reasoning_back else "–")
    assert ids.startswith(str(quirks.id_length))
