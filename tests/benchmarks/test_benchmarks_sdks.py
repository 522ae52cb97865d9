"""Our codecs beside the vendors' own SDK accumulators, on the recorded streams, in one run."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.foreign_servers import cache_folder

ROOT = Path(__file__).resolve().parents[2]
TARGET = 20


def _python(cache):
    """Return an interpreter that has the SDKs and what our codecs need; skip where they cannot be installed."""
    folder = cache / "sdks"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", "anthropic", "openai", "attrs", "cattrs", "orjson"]
        if subprocess.run(install, check=False).returncode and subprocess.run(install, check=False).returncode:
            pytest.skip("the SDKs could not be installed")
    return python


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_codec_is_much_faster_than_the_vendors_accumulator(tmp_path_factory):
    """Framing, parsing, assembly and event objects against framing, parsing and accumulating; geometric mean."""
    streams = Path(os.environ.get("NOVACODE_STREAMS", ROOT.parent / "shared" / "streams"))
    if not streams.is_dir():
        pytest.skip(f"there are no recorded streams in {streams}")
    python = _python(cache_folder(tmp_path_factory.mktemp("sdks")))
    script = Path(__file__).with_name("sdk_accumulators.py")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [str(python), "-W", "ignore", str(script), str(streams)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    print("\n" + ended.stderr, end="")
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    ratios = [row["theirs"] / row["ours"] for row in rows]
    for row, ratio in zip(rows, ratios, strict=True):
        print(f"{ratio:6.1f}  {row['messages']:4d} messages  {row['name']}")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{mean:6.1f}  geometric mean of {len(ratios)} streams")
    assert len(ratios) >= 15
    assert mean >= TARGET
