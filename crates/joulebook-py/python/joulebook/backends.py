"""What reads a card, as objects: giul's classes, on the native readers.

A meter that is made from one of them reads the card natively. An object of your own with `name`,
`kind` ("counter" or "sampler") and `read_joules` or `read_watts` will do as well; it is read through
Python, and what it raises costs the measurement alone.
"""

from __future__ import annotations

import os

from . import _native
from ._native import Fit, read_gpu_state, reset_probe_cache
from ._wait import in_thread, until, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .types import CardState, ComputeApp, NodeLike

__all__ = [
    "COUNTER",
    "SAMPLER",
    "SMI",
    "Backend",
    "Fit",
    "NvmlCounter",
    "NvmlPower",
    "RemoteAgent",
    "SmiSampler",
    "counter_for",
    "fits",
    "probe_node",
    "read_compute_apps",
    "read_gpu_state",
    "read_power_w",
    "reset_probe_cache",
]



def _on_path(name: str) -> str | None:
    for folder in os.get_exec_path():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


#: The program that stands in for the driver's library, where there is one.
SMI = os.environ.get("JOULEBOOK_SMI") or _on_path("nvidia-smi")

COUNTER = "counter"
SAMPLER = "sampler"


class Backend:
    """Something that can be asked about a card. Subclass it for a card of your own.

    A counter gives joules that only ever rise; a sampler gives the watts of now. None: cannot say.
    """

    name = "none"
    kind = "none"

    def read_watts(self) -> float | None:
        """What the card draws now, W."""
        return None

    async def aread_watts(self) -> float | None:
        """read_watts() off the event loop."""
        return await in_thread(self.read_watts)

    def read_joules(self) -> float | None:
        """What the card has drawn so far, J. Counters only."""
        return None

    async def aread_joules(self) -> float | None:
        """read_joules() off the event loop."""
        return await in_thread(self.read_joules)

    def close(self) -> None:
        """Called when a window that it was read for has closed."""

    async def aclose(self) -> None:
        """close() off the event loop, under `async with`."""
        await in_thread(self.close)


class _Card(Backend):
    """A card that is read natively: what is asked of it comes from its recorder's memory."""

    _card: _native.Card

    def read_watts(self) -> float | None:
        return self._card.watts()

    def read_joules(self) -> float | None:
        return self._card.joules() if self.kind == COUNTER else None


class NvmlCounter(_Card):
    """A card's energy counter. Raises RuntimeError where the card has none."""

    name = "nvml_counter"
    kind = COUNTER

    def __init__(self, gpu_index: int | str = 0) -> None:
        self.gpu_index = gpu_index
        self._card = _native.Card.local(gpu_index)
        if self._card.backend_name != self.name:
            raise RuntimeError(
                f"card {gpu_index} has no energy counter that can be read; "
                f"Meter.for_node takes the next best, `joulebook probe` says more"
            )


class NvmlPower(_Card):
    """A card's power gauge, through the driver's library."""

    name = "nvml_power"
    kind = SAMPLER

    def __init__(self, gpu_index: int | str = 0) -> None:
        self.gpu_index = gpu_index
        self._card = _native.Card.local(gpu_index)


class SmiSampler(_Card):
    """A card's power, through one nvidia-smi that runs for all who ask."""

    name = "smi_sampler"
    kind = SAMPLER

    def __init__(self, gpu_index: int | str = 0) -> None:
        self.gpu_index = gpu_index
        self._card = _native.Card.program(gpu_index)


class RemoteAgent(_Card):
    """A card of another machine, through the agent there ("http://host:9402")."""

    name = "remote_agent"
    kind = SAMPLER

    def __init__(self, endpoint: str, gpu_index: int | str = 0, timeout_s: float = 2.0) -> None:
        self.url = endpoint.rstrip("/") + "/power"
        self.gpu_index = gpu_index
        self.timeout_s = timeout_s
        self._card = _native.Card.agent(endpoint, gpu_index, timeout_s)


def _of(name: str, card: _native.Card) -> Backend:
    """The object for what a meter has found."""
    kinds: dict[str, type[_Card]] = {
        cls.name: cls for cls in (NvmlCounter, NvmlPower, SmiSampler, RemoteAgent)
    }
    cls = kinds.get(name, _Card)
    backend = cls.__new__(cls)
    backend._card = card
    if cls is _Card:
        backend.name = name
    return backend


def counter_for(gpu_index: int | str = 0) -> NvmlCounter | None:
    """The energy counter of a card of this machine, or None where it has none that answers."""
    try:
        return NvmlCounter(gpu_index)
    except RuntimeError:
        return None


def read_power_w(gpu_index: int | str = 0) -> float | None:
    """What a card of this machine draws now, W; None where that cannot be read. Asks the driver."""
    state = read_gpu_state(gpu_index)
    return None if state is None else state["watts"]


def read_compute_apps(gpu_index: int | str = 0) -> list[ComputeApp] | None:
    """The processes on a card of this machine. None where they cannot be listed, which is another
    thing than nobody. Asks the driver."""
    state = read_gpu_state(gpu_index)
    return None if state is None else state["compute_apps"]


async def probe_node(node: NodeLike | None, timeout_s: float = 3.0) -> CardState | None:
    """The state of a node's card now, here or elsewhere; None where it cannot be seen in time."""
    if node is None:
        return None
    state: CardState | None = await within(timeout_s, until(_native._probe_then, node))
    return state


async def fits(node: NodeLike | None, need_mib: int, timeout_s: float = 3.0) -> Fit:
    """Whether so much memory is free on a node's card: before something is woken that needs it."""
    if node is None:
        return Fit()
    fit: Fit | None = await within(timeout_s, until(_native._fits_then, node, need_mib))
    return Fit() if fit is None else fit
