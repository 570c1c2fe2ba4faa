"""What ``vllm bench`` writes, as one JSON object, or one error that says what is wrong with it and what to do.

In: text. Out: a mapping, whose keys `bench_serve` and `throughput` read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servingplan.errors import InputError, Problem


class InvalidResult(InputError):
    """A result that cannot be read."""


def invalid(name: str, key: str, message: str) -> InvalidResult:
    """What is wrong with a key of a result, or with all of it where the key is empty."""
    return InvalidResult(Problem(path=f"{name}: {key}" if key else name, reason="InvalidResult", message=message))


def parsed(text: str, name: str, *, program: str) -> Mapping[str, Any]:
    """The result in a text. name: the file, for messages. program: what wrote it. Raises `InvalidResult`."""
    try:
        result = json.loads(text)
    except ValueError as error:
        raise invalid(name, "", f"it is no JSON ({error}): was the run cut off?") from error
    if not isinstance(result, Mapping):
        raise invalid(name, "", f"it is no result of `{program}`: expected one JSON object")
    return result
