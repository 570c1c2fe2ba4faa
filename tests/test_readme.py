"""What the README shows is what the commands print."""

from __future__ import annotations

from scripts.readme_outputs import BLOCK, README, filled


def test_outputs_in_the_readme_are_what_the_commands_print_now() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == 4
    assert filled(text) == text, "run python scripts/readme_outputs.py"
