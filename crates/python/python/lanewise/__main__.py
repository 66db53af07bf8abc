"""The command `lanewise`, also as `python -m lanewise`."""

import signal
import sys

from ._lanewise import command_line


def main() -> int:
    """Runs the command with this process's arguments; the exit code."""
    # Python's own handler only sets a flag, and would wait for the command to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command_line(["lanewise", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
