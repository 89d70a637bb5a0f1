"""Cards made of Python: what people's own backends look like."""

import asyncio
import time


class Card:
    """Draws what it is told to, and knows what that was."""

    def __init__(self, watts=70.0):
        self._changes = [(time.perf_counter(), watts)]

    def draw(self, watts):
        self._changes.append((time.perf_counter(), watts))

    @property
    def watts(self):
        return self._changes[-1][1]

    def seconds_at(self, watts):
        """How long it has drawn that."""
        ends = [*(t for t, _ in self._changes[1:]), time.perf_counter()]
        return sum(end - t for (t, drawn), end in zip(self._changes, ends) if drawn == watts)

    def joules(self, until=None):
        """What it has drawn since it was made."""
        until = time.perf_counter() if until is None else until
        ends = [*(t for t, _ in self._changes[1:]), until]
        return sum(watts * (end - t) for (t, watts), end in zip(self._changes, ends))


class Backend:
    """A duck: no base class of either package. It counts how it was used."""

    name, kind = "none", "none"

    def __init__(self, card=None):
        self.card = card if card is not None else Card()
        self.reads = self.closes = 0

    def read_watts(self):
        return None

    async def aread_watts(self):
        return await asyncio.get_running_loop().run_in_executor(None, self.read_watts)

    def read_joules(self):
        return None

    async def aread_joules(self):
        return self.read_joules()

    def close(self):
        self.closes += 1

    async def aclose(self):
        self.close()


class Counter(Backend):
    """A card with an energy register."""

    name, kind = "bench_counter", "counter"

    def __init__(self, card=None):
        super().__init__(card)
        self.values = []

    def read_joules(self):
        self.reads += 1
        self.values.append(self.card.joules())
        return self.values[-1]

    def between(self):
        """What the register has counted between its first and its last read."""
        return self.values[-1] - self.values[0]


class Sampler(Backend):
    """A card with a power gauge."""

    name, kind = "bench_sampler", "sampler"

    def read_watts(self):
        self.reads += 1
        return self.card.watts


class Scripted(Backend):
    """A gauge that says what stands in a list, then the last of it; an exception is raised."""

    name, kind = "scripted", "sampler"

    def __init__(self, *says):
        super().__init__()
        self._says = list(says)

    def read_watts(self):
        self.reads += 1
        says = self._says.pop(0) if len(self._says) > 1 else self._says[0]
        if isinstance(says, Exception):
            raise says
        return says
