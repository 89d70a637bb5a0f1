"""What `dataclasses` needs of a class that is none, made when it is first asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Fields:
    """`__dataclass_fields__` of a class that lists its fields in `__match_args__`."""

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        import dataclasses

        names: tuple[str, ...] = owner.__match_args__  # type: ignore[attr-defined]
        fields: dict[str, Any] = dataclasses.make_dataclass(
            owner.__name__, names, frozen=True
        ).__dataclass_fields__
        owner.__dataclass_fields__ = fields  # type: ignore[attr-defined]
        return fields
