"""Labels that choose series of a Prometheus, as people type them."""

from __future__ import annotations

from collections.abc import Sequence

from servingplan.errors import UsageError


def parse_matchers(texts: Sequence[str]) -> dict[str, str]:
    """``LABEL=VALUE`` of ``--match``, each. Raises UsageError."""
    found = {}
    for text in texts:
        label, sign, value = text.partition("=")
        if not label.isidentifier() or not sign:
            raise UsageError(f"--match {text!r}: write LABEL=VALUE, as in namespace=llm")
        found[label] = value
    return found
