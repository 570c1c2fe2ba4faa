"""What can go wrong with a local cluster, as members of the package's error tree.

Place in the flow: below everything else in ``localcluster``.
"""

from __future__ import annotations

from servingplan.errors import ClusterError, InputError


class ToolchainProblem(InputError):
    """Go is missing, too old or cannot build; nothing was started."""


class StartFailed(ClusterError):
    """A component of the local cluster did not start or ended by itself."""


class NotSeen(ClusterError):
    """What was waited for did not come in time."""


class KubectlFailed(ClusterError):
    """``kubectl`` ended with an error; ``stderr`` is what it said, ``code`` its exit code."""

    def __init__(self, arguments: tuple[str, ...], code: int, stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)} ended with {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr
