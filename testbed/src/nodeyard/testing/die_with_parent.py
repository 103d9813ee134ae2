"""Becomes another program that the kernel kills when its parent dies.

Run as a script, `leash.py PARENT-PID PROGRAM ARGUMENT...`, in a bare interpreter. The wish survives the exec, so
nothing of Python stays behind, and it holds however the parent ends, kill -9 included.
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
        if os.getppid() != int(parent):  # it died before we asked
            return
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
