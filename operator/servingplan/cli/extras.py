"""Packages that only some verbs need, and that an installation may lack.

In: imports. Out: nothing, or the error that says which extra brings what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from servingplan.errors import UsageError


@contextmanager
def needed(what: str, *, extra: str) -> Iterator[None]:
    """While packages are imported. what: needs them. Raises UsageError where the one of `extra` is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(f"{what} needs {error.name}: pip install 'servingplan[{extra}]'") from error
