"""Calls the real ``kubectl`` on one cluster.

Place in the flow: everything in ``localcluster`` that talks to the API after the start does it through here, and the
e2e tests do too.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from servingplan.localcluster.failures import KubectlFailed, NotSeen

TIMEOUT_S = 60.0
POLL_S = 0.1


class Kubectl:
    """``kubectl`` with fixed options; ``kubectl("get", "pods")`` returns its standard output.

    options: put before the arguments of each call, as in ``--kubeconfig``. Raises `KubectlFailed` with what it said,
    `NotSeen` when it takes too long.
    """

    def __init__(self, program: Path, *, options: Sequence[str] = (), cache: Path | None = None) -> None:
        self.program = program
        self.options = (*options, *((f"--cache-dir={cache}",) if cache else ()))

    def __call__(self, *arguments: str, stdin: str | None = None, timeout_s: float = TIMEOUT_S) -> str:
        """Runs one command and returns its standard output."""
        try:
            done = subprocess.run(  # noqa: S603 - kubectl itself
                (str(self.program), *self.options, *arguments),
                input=stdin,
                # A user's kuberc may change defaults and add aliases: a test must not depend on it.
                env=os.environ | {"KUBECTL_KUBERC": "false"},
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise NotSeen(f"an answer of kubectl {' '.join(arguments)} was not seen within {timeout_s:.0f} s") from late
        if done.returncode != 0:
            raise KubectlFailed(arguments, done.returncode, done.stderr)
        return done.stdout

    def json(self, *arguments: str, stdin: str | None = None) -> Any:
        """Runs one command with ``-o json`` and returns what it printed, parsed."""
        return json.loads(self(*arguments, "-o", "json", stdin=stdin))

    def apply(self, *manifests: Mapping[str, Any], namespace: str | None = None, options: Sequence[str] = ()) -> str:
        """Applies manifests that are given as dicts."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        where = ("--namespace", namespace) if namespace else ()
        return self("apply", *where, *options, "-f", "-", stdin=json.dumps(listed))

    def with_options(self, *options: str) -> Kubectl:
        """The same with further options in each call, as in ``--namespace``."""
        return Kubectl(self.program, options=(*self.options, *options))


def wait_until(
    condition: Callable[[], bool], *, what: str, timeout_s: float, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Waits until ``condition()`` holds; raises `NotSeen` that names ``what`` after ``timeout_s``.

    meanwhile: called between two tries, to raise early when waiting has become pointless.
    """
    deadline = monotonic() + timeout_s
    while not condition():
        meanwhile()
        if monotonic() > deadline:
            raise NotSeen(f"{what} was not seen within {timeout_s:.0f} s")
        sleep(POLL_S)
