"""giul's module of this name: the meter, and what it gives."""

from ._native import Energy, Meter, Node

#: The name under which giul's first users know it.
EnergyMeter = Meter

__all__ = ["Energy", "EnergyMeter", "Meter", "Node"]
