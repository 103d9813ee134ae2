"""Script that executes a program which the kernel kills when its parent dies, even by SIGKILL.

Usage: `python -I -S die_with_parent.py PARENT-PID PROGRAM ARGUMENT...`. The death signal survives the exec. This is a
file of its own because it runs in a bare interpreter, without the package.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # it died before the call
            return
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
