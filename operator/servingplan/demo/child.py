"""The operator as a child of the demo: ``python -m servingplan.demo.child PARENT``, settings in the environment.

It ends when the demo ends, however that ends: a demo that is killed leaves no operator behind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from servingplan.controller.app import run
from servingplan.controller.settings import read_settings

LOOK_EVERY_S = 0.5


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_S)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the operator until it is told to stop, or until its parent is gone."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), name="parent", daemon=True).start()
    run(read_settings({}, os.environ))


if __name__ == "__main__":
    main()
