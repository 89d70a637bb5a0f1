from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from ._native import Energy, Receipt
from .types import NodeLike

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

class Metered(Protocol, Generic[P, R]):
    """A function whose calls are measured."""

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R: ...
    def energy(self) -> Energy | Receipt | None: ...

@overload
def metered(node: Callable[P, R], /) -> Metered[P, R]: ...  # type: ignore[overload-overlap]
@overload
def metered(
    node: NodeLike = None,
    *,
    tokens: int | Callable[[Any], int | None] | None = None,
    to: Callable[[Energy], object] | Callable[[Receipt], object] | None = None,
    joules_per_1k_hint: float | None = None,
    sync: Callable[[], object] | None = None,
) -> Callable[[Callable[P, R]], Metered[P, R]]: ...
