"""Say what the lab's cards draw now, from Python (standard library only).

    live = Live.create("/dev/shm/cards", cards=1)
    live.set(0, 400.0)                  # card 0 draws 400 W from now on
    ...
    live.set(0, 70.0)
    live.joules(0, t0_ns, t1_ns)        # the truth of that window

The scenario's card says `dynamic`, and `control PATH` (or FAKEGPU_CONTROL) names the file. Stamps
are time.monotonic_ns(), or time.time_ns() where the scenario's clock is realtime. The layout of the
file stands in crates/joulebook-lab/src/control.rs.
"""

import bisect
import mmap
import os
import struct
import sys
import time

MAGIC = int.from_bytes(b"JBLIVE01", "little")
HEADER, CARD, CHANGE = 8, 8, 4  # sizes in 8-byte words


class Live:
    """A control file. One writer a card; any number of readers."""

    def __init__(self, path):
        if sys.byteorder != "little":
            raise RuntimeError("the control file is little-endian")
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        # One aligned 8-byte store for each word: struct.pack_into("<Q") writes byte by byte.
        self._words = memoryview(self._map).cast("Q")
        if self._words[0] != MAGIC:
            raise ValueError(f"{path} is no control file")
        self.cards, self.capacity, clock = self._words[1], self._words[2], self._words[3]
        self.now_ns = time.time_ns if clock else time.monotonic_ns

    @classmethod
    def create(cls, path, cards=1, capacity=1 << 20, realtime=False):
        """A new file; an old one of that name is replaced."""
        if os.path.exists(path):
            os.unlink(path)
        with open(path, "xb") as file:
            file.truncate(8 * (HEADER + cards * (CARD + capacity * CHANGE)))
            file.write(struct.pack("<QQQQ", 0, cards, capacity, int(realtime)))
            file.seek(0)
            file.write(struct.pack("<Q", MAGIC))
        return cls(path)

    def set(self, card, watts, t_ns=None):
        """Sets a card's draw from now on; returns the instant it took, ns."""
        watts = float(watts)
        if not 0 <= watts < float("inf"):
            raise ValueError(f"{watts} W is no power")
        n = self._count(card)
        if n >= self.capacity:
            raise RuntimeError(f"card {card}'s log of {n} changes is full")
        t_ns = self.now_ns() if t_ns is None else t_ns
        joules = 0.0
        if n:
            last_ns, last_watts, last_joules = self._change(card, n - 1)
            if t_ns < last_ns:
                raise ValueError(f"{t_ns} ns lies before the last change at {last_ns} ns")
            joules = last_joules + last_watts * (t_ns - last_ns) / 1e9
        watts_bits, joules_bits = _bits(watts), _bits(joules)
        at = self._at(card, n)
        self._words[at] = t_ns
        self._words[at + 1] = watts_bits
        self._words[at + 2] = joules_bits
        self._words[at + 3] = t_ns ^ watts_bits ^ joules_bits ^ (n + 1)
        self._words[HEADER + card * CARD] = n + 1
        return t_ns

    def joules(self, card, t0_ns, t1_ns, idle_w=70.0):
        """The true energy between two instants of the file's clock; `idle_w` before any change."""
        return self._since_first(card, t1_ns, idle_w) - self._since_first(card, t0_ns, idle_w)

    def _since_first(self, card, t_ns, idle_w):
        count = self._count(card)
        if not count:
            return idle_w * t_ns / 1e9
        stamps = _Stamps(self, card, count)
        n = bisect.bisect_right(stamps, t_ns) - 1
        if n < 0:
            return -idle_w * (stamps[0] - t_ns) / 1e9
        then_ns, watts, joules = self._change(card, n)
        return joules + watts * (t_ns - then_ns) / 1e9

    def _count(self, card):
        if not 0 <= card < self.cards:
            raise IndexError(f"the control file has {self.cards} cards (from 0), not card {card}")
        return self._words[HEADER + card * CARD]

    def _at(self, card, n):
        return HEADER + self.cards * CARD + (card * self.capacity + n) * CHANGE

    def _change(self, card, n):
        at = self._at(card, n)
        t_ns, watts, joules = (self._words[at + i] for i in range(3))
        return t_ns, _double(watts), _double(joules)


class _Stamps:
    """The instants of a card's changes, as a sequence to search in."""

    def __init__(self, live, card, count):
        self._live, self._card, self._count = live, card, count

    def __len__(self):
        return self._count

    def __getitem__(self, n):
        return self._live._words[self._live._at(self._card, n)]


def _bits(number):
    return struct.unpack("=Q", struct.pack("=d", number))[0]


def _double(bits):
    return struct.unpack("=d", struct.pack("=Q", bits))[0]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} FILE CARD WATTS   (FILE is created where it is missing)")
    name = sys.argv[1]
    live = Live(name) if os.path.exists(name) else Live.create(name, cards=int(sys.argv[2]) + 1)
    print(live.set(int(sys.argv[2]), float(sys.argv[3])))
