"""The shapes of what is given as plain data."""

from typing import TypeAlias, TypedDict

#: A Node, or any object with a node's attributes: those it lacks take the defaults, so none is asked
#: for here.
NodeLike: TypeAlias = object


class ComputeApp(TypedDict):
    """A process on a card. used_mib is None where the driver does not say."""

    pid: int
    used_mib: int | None
    name: str


class CardState(TypedDict):
    """A card now. None: could not be read, which is not "fine"."""

    gpu: int | None
    name: str | None
    watts: float | None
    memory_used_mib: int | None
    memory_total_mib: int | None
    memory_free_mib: int | None
    utilization_pct: int | None
    compute_apps: list[ComputeApp] | None
