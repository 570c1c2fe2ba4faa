"""Self-contained pages from the templates of this package.

In: a template and what it shows. Out: HTML in which every text of files and flags is escaped.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **shown: Any) -> str:
    """The page. Raises UndefinedError for what the template shows and is not given."""
    loader = PackageLoader("servingplan.reporting", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return environment.get_template(template).render(**shown)
