"""The program `joulebook`, as `python -m joulebook` and as the command of that name."""

import signal
import sys

from . import _native


def main() -> None:
    """Runs the program and exits with its code."""
    # As the system has them for a program that is no Python: Ctrl-C ends it, and what it starts
    # inherits nothing that this interpreter has set.
    for name in ("SIGINT", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    sys.exit(_native.main(sys.argv))


if __name__ == "__main__":
    main()
