"""Blocks of a request's size leave no holes behind."""

import subprocess
import sys

import pytest

# After the first block of 8 MB was freed, glibc takes the next of 6 MB from its own heap, and keeps it: something
# small lies behind it.
KEEP = """
import sys
from novacode.models.blocks import return_large_blocks
if sys.argv[1] == "on" and not return_large_blocks():
    raise SystemExit("no glibc")
block = b"x" * 8_000_000
del block
block = b"y" * 6_000_000
behind = [b"z" * 3_000 for _ in range(50)]
del block
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_is_given_back():
    def resident(switch):
        done = subprocess.run([sys.executable, "-c", KEEP, switch], capture_output=True, text=True, check=False)
        if "no glibc" in done.stderr:
            pytest.skip("another C library, which gives back by itself")
        return int(done.stdout)

    assert resident("on") < resident("off") - 4_000
