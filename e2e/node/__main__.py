"""``python -m e2e.node COMMAND``: runs a command, as pytest, where real nodes can run, and cleans up after it."""

from __future__ import annotations

import sys

from e2e.node.machine import Unfit, prepare
from e2e.node.space import Space
from servingplan.errors import InputError
from servingplan.localcluster.build import ensure_built


def main(command: list[str]) -> int:
    """The command's exit code; 1 with one sentence on standard error where this machine is unfit."""
    if not command:
        print("usage: python -m e2e.node COMMAND [ARGUMENT...]", file=sys.stderr)
        return 2
    try:
        prepare()
        ensure_built()
        with Space() as space:
            return space.run(command)
    except (Unfit, InputError) as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
