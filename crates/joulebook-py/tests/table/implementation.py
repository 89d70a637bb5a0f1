"""The two packages, by the names that giul gives things."""

import importlib

NAMES = ("giul", "joulebook")


class Implementation:
    """One of them. Its attributes are the package's public names, wherever giul keeps them."""

    def __init__(self, name):
        self.name = name
        self.module = importlib.import_module(name)
        places = [self.module]
        try:
            places.append(importlib.import_module(f"{name}.backends"))
        except ImportError:
            pass
        self._places = places

    @property
    def is_ours(self):
        return self.name == "joulebook"

    def __getattr__(self, name):
        for place in self.__dict__["_places"]:
            if hasattr(place, name):
                return getattr(place, name)
        raise AttributeError(f"neither {self.name} nor {self.name}.backends has {name}")

    def __repr__(self):
        return self.name
