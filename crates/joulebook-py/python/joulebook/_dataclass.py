"""What `dataclasses` needs of a class that is none, made when it is first asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Fields:
    """`__dataclass_fields__` of a class that lists its fields in `__match_args__`."""

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        import dataclasses

        names: tuple[str, ...] = getattr(owner, "__match_args__")
        twin = dataclasses.make_dataclass(owner.__name__, names, frozen=True)
        fields: dict[str, Any] = getattr(twin, "__dataclass_fields__")
        setattr(owner, "__dataclass_fields__", fields)
        return fields


def like_a_dataclass(owner: type) -> None:
    """Makes `dataclasses.fields`, `asdict` and `replace` work on its instances."""
    setattr(owner, "__dataclass_fields__", Fields())
