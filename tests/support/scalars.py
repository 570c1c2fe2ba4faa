"""How kubectl reads plain YAML scalars: what is written, and the JSON value that arrives at the API server."""

from __future__ import annotations

from typing import Any

SCALARS: tuple[tuple[str, Any], ...] = (
    # Times and dates stay text.
    ("20:00", "20:00"),
    ("08:00", "08:00"),
    ("6:30", "6:30"),
    ("12:30:45", "12:30:45"),
    ("2026-12-01", "2026-12-01"),
    ("2026-12-01T07:00", "2026-12-01T07:00"),
    ("2026-12-01T07:00:00", "2026-12-01T07:00:00"),
    ("2026-12-01 07:00:00", "2026-12-01 07:00:00"),
    # The words of YAML 1.1 are booleans.
    ("on", True),
    ("yes", True),
    ("y", True),
    ("True", True),
    ("NO", False),
    ("n", False),
    ("off", False),
    ("yEs", "yEs"),
    # Units are text.
    ("20%", "20%"),
    ("10m", "10m"),
    # Numbers.
    ("18", 18),
    ("+5", 5),
    ("-1_0", -10),
    ("1_000", 1000),
    ("017", 15),
    ("-017", -15),
    ("0o17", 15),
    ("0x1F", 31),
    ("-0x1f", -31),
    ("0X1F", 31),
    ("0b11", 3),
    ("08", 8.0),
    ("018", 18.0),
    ("1.50", 1.5),
    (".5", 0.5),
    ("1e3", 1000.0),
    ("5.0E+2", 500.0),
    ("0.1", 0.1),
    ("1e-7", 1e-07),
    ("1.2.3", "1.2.3"),
    ("1e", "1e"),
    ("0x", "0x"),
    ("0b2", "0b2"),
    ("0o8", "0o8"),
    ("_1", "_1"),
    ("1-2", "1-2"),
    (".", "."),
    ("+", "+"),
    # Tagged.
    ("!!str 12", "12"),
    ("!!binary aGFsbG8=", "hallo"),
    ("!!timestamp 2026-01-01", "2026-01-01"),
)
