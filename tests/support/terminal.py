"""What people see in a terminal."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def printed(view: RenderableType) -> str:
    """A view as text, 120 columns wide, without colour."""
    console = Console(file=io.StringIO(), width=120, color_system=None, record=True)
    console.print(view)
    return console.export_text()
