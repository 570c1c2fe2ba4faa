"""Columns by their names: which of them is the time, which counts tokens. In: names. Out: where to find what. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "time": (
        "timestamp", "time", "@timestamp", "ts", "t_s", "t", "start_time", "starttime", "time_iso8601", "arrived_at",
        "arrival_time", "arrival", "created_at", "created", "datetime", "date",
    ),
    "input": (
        "input_tokens", "prompt_tokens", "input_length", "contexttokens", "context_tokens", "request_tokens",
        "prompt_len", "input_len", "num_prefill_tokens", "usage.prompt_tokens", "usage.input_tokens",
    ),
    "output": (
        "output_tokens", "completion_tokens", "output_length", "generatedtokens", "generated_tokens",
        "response_tokens", "output_len", "num_decode_tokens", "usage.completion_tokens", "usage.output_tokens",
    ),
    "tenant": ("tenant", "user", "user_id", "client", "client_id", "team", "organization", "org"),
    "priority": ("priority", "priority_class", "service_tier"),
    "blocks": ("hash_ids", "block_hashes", "prefix_hashes"),
    "status": ("status", "status_code", "response_code", "http_status"),
    "method": ("method", "request_method"),
    "path": ("path", "uri", "request_uri", "x-envoy-origin-path"),
}  # fmt: skip
"""What a column means, and the names that logs give it, lower-case, in the order in which they are taken."""


def found(names: Iterable[str], stated: Mapping[str, str]) -> dict[str, str]:
    """By meaning, the name of its column: the stated one, or the first known one that is there.

    Raises ValueError where a stated name is not there, or nothing is a time.
    """
    there = list(names)
    known = {_plain(name): name for name in reversed(there)}
    columns: dict[str, str] = {}
    for meaning, candidates in COLUMNS.items():
        if meaning in stated:
            if stated[meaning] not in there:
                raise ValueError(f"it has no column {stated[meaning]!r}; there are: {', '.join(there)}")
            columns[meaning] = stated[meaning]
        elif (name := next((known[c] for c in candidates if c in known), None)) is not None:
            columns[meaning] = name
    if "time" not in columns:
        raise ValueError(
            f"none of its columns ({', '.join(there[:12])}) is known as the time: state --column time=NAME"
        )
    return columns


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def tokens(value: object) -> int | None:
    """A count of tokens as logged; None where it is not. Raises ValueError."""
    if value is None or value in {"", "-"}:
        return None
    count = int(value) if isinstance(value, int) else _whole(str(value))
    if count < 0:
        raise ValueError(f"{value} is no number of tokens")
    return count


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return round(float(text))
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is no number of tokens") from None
