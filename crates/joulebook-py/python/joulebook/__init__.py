"""What a piece of work cost in joules, measured on your own GPUs.

    from joulebook import Meter, Node

    node = Node(name="iris", gpu_index=0, idle_w=38.0, is_local=True)
    async with Meter.for_node(node, joules_per_1k_hint=4100.0) as m:
        await retrieve(); m.mark("retrieve")
        await generate(); m.mark("generate")
    energy = m.result(tokens=412)

The rules: work is charged above idle; no zero is made up; an estimate says that it is one; a card
that is shared is witnessed, not measured. Metering raises nothing into the work it measures, and
neither blocks nor slows it.
"""

from ._dataclass import like_a_dataclass
from ._native import (
    Books,
    Energy,
    Meter,
    Node,
    Receipt,
    Ticket,
    current,
    mark,
    read_gpu_state,
    reset_probe_cache,
    version,
)
from .backends import (
    Backend,
    Fit,
    NvmlCounter,
    NvmlPower,
    RemoteAgent,
    SmiSampler,
    counter_for,
    fits,
    probe_node,
    read_compute_apps,
    read_power_w,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._metered import metered as metered


def __getattr__(name: str) -> object:
    """What takes longer to import than the rest, when it is asked for."""
    if name == "metered":
        from ._metered import metered

        return metered
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__version__ = version()

# giul's are dataclasses, and are used as such.
like_a_dataclass(Energy)
like_a_dataclass(Node)

#: The name under which giul's first users know it.
EnergyMeter = Meter

__all__ = [
    "Backend",
    "Books",
    "Energy",
    "EnergyMeter",
    "Fit",
    "Meter",
    "Node",
    "NvmlCounter",
    "NvmlPower",
    "Receipt",
    "RemoteAgent",
    "SmiSampler",
    "Ticket",
    "__version__",
    "counter_for",
    "current",
    "fits",
    "mark",
    "metered",
    "probe_node",
    "read_compute_apps",
    "read_gpu_state",
    "read_power_w",
    "reset_probe_cache",
]
