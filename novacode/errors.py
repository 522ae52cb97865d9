"""Every exception NovaCode raises on purpose, in one tree.

    NovaError
    ├── UsageError              the command line or the API was used wrongly           exit 2
    ├── CredentialsError        no key, or a key the provider refuses                  exit 41
    ├── InputError              a file or prompt that cannot be used                   exit 42
    ├── SettingsError           a settings file that cannot be used                    exit 52
    ├── ReplayMismatch          a request that is not on the tape                      exit 55
    ├── ModelFailed             the model could not answer; carries a Failure          exit 1, 41, 75
    ├── ProtocolError           (never raised itself)
    │   ├── LocalProtocolError  we used a codec wrongly: a bug of ours
    │   └── RemoteProtocolError the peer broke its protocol, or the stream ended early
    ├── PairingError            calls and results do not belong together: a bug of ours, or a damaged file
    ├── SessionError            a session that is locked, damaged or not there
    ├── ToolFailed              a tool could not do its work; its text is for the model
    └── ReapError               something outlived its grace; names what

Codecs raise `ProtocolError`s and nothing else; any other exception out of one is a bug.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from novacode.values.failure import Failure

__all__ = [
    "CredentialsError",
    "InputError",
    "LocalProtocolError",
    "ModelFailed",
    "NovaError",
    "PairingError",
    "ProtocolError",
    "ReapError",
    "RemoteProtocolError",
    "ReplayMismatch",
    "SessionError",
    "SettingsError",
    "ToolFailed",
    "UsageError",
]


class NovaError(Exception):
    """Root of the tree. `exit_code` is what the command line ends with when nobody handles it."""

    exit_code = 1


class UsageError(NovaError):
    """The command line or the API was used wrongly."""

    exit_code = 2


class CredentialsError(NovaError):
    """There is no key for the provider, or the provider refuses it."""

    exit_code = 41


class InputError(NovaError):
    """A file or a prompt that was handed in cannot be used."""

    exit_code = 42


class SettingsError(NovaError):
    """A settings file cannot be used; the text names the file, the key and what was expected."""

    exit_code = 52


class ReplayMismatch(NovaError):
    """A replay met a request that is not on its tape."""

    exit_code = 55


class ModelFailed(NovaError):
    """The model could not answer. `failure` says why, and whether trying again can help."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ProtocolError(NovaError):
    """Base of the two protocol errors; which side is to blame is always known, so it is never raised itself."""


class LocalProtocolError(ProtocolError):
    """We misused a codec, for example by feeding it after its end. A bug of ours."""


class RemoteProtocolError(ProtocolError):
    """The peer broke its protocol, or its stream ended before the end was marked."""


class PairingError(NovaError):
    """Calls and results do not belong together one to one, in order."""


class SessionError(NovaError):
    """A session is locked by another process, damaged beyond its torn tail, or not there."""

    exit_code = 42


class ToolFailed(NovaError):
    """A tool could not do its work. The text is written for the model: the value, what is wrong, what to do."""


class ReapError(NovaError):
    """Something outlived its grace. The text names the pids."""
