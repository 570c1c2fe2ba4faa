"""The command line, ``servingplan`` and ``kubectl servingplan``: one file per verb.

Place in the flow: files or a cluster in, what people asked for out. Standard output is data, standard error is talk.
Verbs are imported when they are called, so that help is instant and what needs no cluster loads no cluster client.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program on the process's arguments. Ends the process with the exit codes of docs/reference/cli.md."""
    from servingplan.cli.program import program  # noqa: PLC0415  a verb that is imported alone needs no program

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a block or a dash still shows the rest.
            stream.reconfigure(errors="replace")
    program()
