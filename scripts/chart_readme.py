"""Writes the table of values in the chart's README, from values.yaml and its `# --` comments.

`python scripts/chart_readme.py` rewrites charts/servingplan/README.md between its two marks. A value with a comment is
one row; what lies below such a value is part of its default.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

CHART = Path(__file__).parents[1] / "charts" / "servingplan"
BEGIN = "<!-- values: begin -->"
END = "<!-- values: end -->"

_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z]+):")
_COMMENT = re.compile(r" *# ?(?P<mark>-- )?(?P<text>.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value of the chart: its dotted path, its default as JSON and what it is for."""

    path: str
    default: str
    purpose: str


def values(text: str) -> Iterator[Value]:
    """The commented values in the order of values.yaml."""
    defaults = YAML(typ="safe", pure=True).load(text)
    parents: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        said = _COMMENT.fullmatch(line)
        if said is not None:
            comment = [said["text"]] if said["mark"] else [*comment, said["text"]] if comment else []
            continue
        found = _KEY.match(line)
        if found is not None:
            path = [*parents[: len(found["indent"]) // 2], found["key"]]
            parents = path
            if comment:
                yield Value(path=".".join(path), default=_default(defaults, path), purpose=" ".join(comment))
        comment = []


def updated(readme: str, text: str) -> str:
    """The README with the table of these values. Raises ValueError where the marks are missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README needs the marks {BEGIN} and {END}")
    rows = [f"| `{value.path}` | `{value.default}` | {value.purpose} |" for value in values(text)]
    table = "\n".join(["| value | default | what it is for |", "|---|---|---|", *rows])
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _default(defaults: Any, path: list[str]) -> str:
    for key in path:
        defaults = defaults[key]
    return json.dumps(defaults)


def main() -> int:
    """Rewrite the README."""
    readme = CHART / "README.md"
    readme.write_text(updated(readme.read_text(), (CHART / "values.yaml").read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
