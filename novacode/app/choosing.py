"""From the name of a model to something that answers requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from novacode.errors import CredentialsError, InputError
from novacode.models.catalog import PROVIDERS, Provider, auth_headers, split_model
from novacode.models.client import ModelClient
from novacode.models.endpoint import Endpoint, Timeouts
from novacode.models.wire import Wire
from novacode.protocols.base import Codec
from novacode.protocols.summary import codec_for
from novacode.values.ids import CallIds

if TYPE_CHECKING:
    from novacode.models.script import Script
    from novacode.workspace.simulated import Simulation

__all__ = ["Choice", "Spoken", "choose", "scripted", "scripted_label", "without_key"]

_TRY_IT = "To try NovaCode without a key: novacode run --model demo, or novacode demo."


@attrs.frozen
class Spoken:
    """How a model is spoken to: the protocol, its dialect, and who signs the reasoning."""

    protocol: str
    quirks: str = ""
    issuer: str = ""


@attrs.frozen
class Choice:
    """A model that was chosen: `label` is what people and events call it, `name` what its provider calls it.

    `scripted` is whether it comes from a file, and so needs neither network nor key and is the same every time.
    """

    label: str
    name: str
    scripted: bool
    _provider: Provider | None = None
    _base_url: str = ""
    _key: str | None = attrs.field(default=None, repr=False)
    _script: Script | None = None
    _recorded: Spoken | None = None

    @property
    def simulation(self) -> Simulation:
        """The world that a script brings along for `--simulate`; an empty one where there is none."""
        from novacode.workspace.simulated import Simulation, parse_simulation  # hardly any run is a simulation

        return parse_simulation(self._script.simulate, self._script.source) if self._script else Simulation()

    @property
    def spoken(self) -> Spoken:
        """How it is spoken to."""
        if self._recorded is not None:
            return self._recorded
        if self._provider is None:
            return Spoken("anthropic", "", codec_for("anthropic").issuer)
        return Spoken(self._provider.protocol, self._provider.quirks, self._codec().issuer)

    def client(
        self,
        ids: CallIds,
        idle_timeout: float | None,
        on_time: Callable[[float], None],
        through: Callable[[Callable[[], Wire]], Wire] = lambda make: make(),
    ) -> ModelClient:
        """Return what asks it. `on_time` is told the time of a script.

        `through` is handed what makes the wire, and returns the one to use.
        """
        return ModelClient(self._codec(), through(lambda: self._wire(idle_timeout, on_time)), ids, idle_timeout)

    def _wire(self, idle_timeout: float | None, on_time: Callable[[float], None]) -> Wire:
        if self._provider is None:
            assert self._script is not None, "a choice has a provider or a script; what was recorded needs no wire"
            # Reading and playing scripts takes 30 ms to import, and a run with a provider does neither.
            from novacode.models.script import ScriptWire

            return ScriptWire(self._script, on_time)
        # httpx is imported only where there is a network to talk to: a scripted run starts in half the time.
        from novacode.models.http import HttpWire

        endpoint = Endpoint(self._base_url, auth_headers(self._provider, self._key))
        return HttpWire(endpoint, Timeouts(idle=idle_timeout))

    def _codec(self) -> Codec:
        if self._recorded is not None:
            codec = _codec(self._recorded.protocol, self._recorded.quirks)
            codec.issuer = self._recorded.issuer or codec.issuer
        elif self._provider is None:
            codec = codec_for("anthropic")
        else:
            codec = _codec(self._provider.protocol, self._provider.quirks)
            if not self._provider.owns(self._base_url):
                # Whoever answers there signs its own reasoning, and the provider itself would refuse it.
                codec.issuer = f"{codec.issuer} at {Endpoint(self._base_url).host}"
        return codec


def choose(wanted: str | None, base_url: str | None, environ: Mapping[str, str]) -> Choice:
    """Return the model that `wanted` names: `provider/model`, `script:FILE` or `demo`.

    Without a name it is the default model of the first provider whose key is in the environment. Raises
    `CredentialsError` where there is no key, `UsageError` for an unknown provider, `InputError` for a script that
    cannot be read, and says what to do.
    """
    if wanted == "demo":
        from novacode.models.script import demo_script  # see `Choice.client`

        return scripted("demo", demo_script())
    if wanted and wanted.startswith("script:"):
        path = wanted.removeprefix("script:")
        if not Path(path).is_file():
            raise InputError(f"the script {path!r} is not a file; --model script:FILE takes a TOML file")
        from novacode.models.script import load_script  # see `Choice.client`

        return scripted(scripted_label(wanted), load_script(Path(path)))
    provider, name = split_model(wanted) if wanted else _from_environment(environ)
    url = base_url or (environ.get(provider.url_env) if provider.url_env else None) or provider.base_url
    if not url:
        raise InputError(f"{provider.name} has no endpoint of its own: give one with --base-url or {provider.url_env}")
    key = next((environ[variable] for variable in provider.key_env if environ.get(variable)), None)
    if key is None and provider.requires_key(url):
        raise CredentialsError(f"there is no key for {provider.name}: set {' or '.join(provider.key_env)}. {_TRY_IT}")
    return Choice(f"{provider.name}/{name}", name, scripted=False, provider=provider, base_url=url, key=key)


def scripted(label: str, script: Script) -> Choice:
    """Return the choice of a script that is already read."""
    return Choice(label, "script", scripted=True, script=script)


def scripted_label(wanted: str) -> str:
    """Return what people and events call the scripted model that `wanted` names."""
    return f"script:{Path(wanted.removeprefix('script:')).name}" if wanted.startswith("script:") else wanted


def without_key(wanted: str) -> Choice:
    """Return the model `wanted`, `provider/model`, for somebody who makes its requests and sends none."""
    provider, name = split_model(wanted)
    url = provider.base_url or "http://localhost"
    return Choice(f"{provider.name}/{name}", name, scripted=False, provider=provider, base_url=url)


def _from_environment(environ: Mapping[str, str]) -> tuple[Provider, str]:
    usual = [provider for provider in PROVIDERS.values() if provider.default_model]
    for provider in usual:
        if any(environ.get(variable) for variable in provider.key_env):
            return provider, provider.default_model
    names = ", ".join(dict.fromkeys(provider.key_env[0] for provider in usual if provider.key_env))
    raise CredentialsError(f"no model was named and no provider's key is set ({names}). {_TRY_IT}")


def _codec(protocol: str, quirks: str) -> Codec:
    if protocol == "openai-chat":
        # Like `codec_for`: only the one codec that is spoken is imported.
        from novacode.protocols.openai_chat import OpenAIChatCodec
        from novacode.protocols.quirks import quirks_for

        return OpenAIChatCodec(quirks_for(quirks))
    return codec_for(protocol)
