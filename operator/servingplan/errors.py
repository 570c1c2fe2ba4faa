"""Everything that can go wrong, split by what the caller does about it.

The tree::

    ServingPlanError
    ├── InputError               the user's input: list every problem, exit code 1, never retried
    │   ├── InvalidPlan          a plan that does not resolve: the operator keeps the last good replicas
    │   ├── UnreadableTrace      simulation: recorded rates that cannot be used
    │   └── ToolchainProblem     localcluster: no Go that can build the control plane
    ├── UsageError               the command line was used wrongly: exit code 2
    ├── CheckFailed              a check that was asked for does not hold: exit code 4
    └── ClusterError             the cluster or a server: exit code 3
        ├── Unreachable          no answer, a time-out, a 5xx or 429: retry with backoff
        │   ├── TryLater         clients: the server says when
        │   └── TooSlow          clients: a model's whole answer did not come in time
        ├── Refused              400, 401, 403, 422 or an admission refusal: say it, retry slowly
        │   └── Denied           clients: an engine's 401, 403 or 404: all it is asked will be refused
        ├── NotFound             404
        │   └── KindNotServed    clients: a whole kind, or a part of its API
        ├── Conflict             409: somebody wrote in between; observe and decide again
        │   └── ApplyConflict    clients: other managers own fields of an apply without force
        ├── NotLeading           clients: another process may lead, so this one does not write; never retried
        ├── StartFailed          localcluster: a component did not start, or ended by itself
        ├── NotSeen              localcluster: what was waited for did not come in time
        ├── KubectlFailed        localcluster: kubectl ended with an error
        └── OperatorEnded        demo: the operator that it runs ended by itself

Those of a package stand with what raises them, named here by their package.

Place in the flow: below everything. Must not import any other module of the package.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with an input.

    path: where, as in ``spec.schedule.windows[0].start``; empty for a whole document.
    reason: CamelCase machine word.
    message: what is wrong and what to do about it, one or two sentences.
    """

    path: str
    reason: str
    message: str

    def __str__(self) -> str:
        """One line for people: path, message and the reason in brackets."""
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message} [{self.reason}]"


class ServingPlanError(Exception):
    """Any error that this package raises on purpose."""


class InputError(ServingPlanError):
    """The input has problems; ``problems`` lists all of them."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


class InvalidPlan(InputError):
    """A ServingPlan that does not resolve."""


class UsageError(ServingPlanError):
    """The command line was used wrongly."""


class CheckFailed(ServingPlanError):
    """A check that was asked for does not hold."""


class ClusterError(ServingPlanError):
    """The cluster, or another server, did not do what it was asked."""


class Unreachable(ClusterError):
    """No answer, or one that says "later": time-out, connection refused, 429, 5xx."""


class Refused(ClusterError):
    """The server understood and refuses: 400, 401, 403, 422 or an admission rule."""


class NotFound(ClusterError):
    """The object, or its kind, does not exist."""


class Conflict(ClusterError):
    """409: the object changed since it was read, or another manager owns the field."""
