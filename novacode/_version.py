"""The version, alone, so that `novacode --version` imports nothing else of ours."""

VERSION = "0.1.0"
