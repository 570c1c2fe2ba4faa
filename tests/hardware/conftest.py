"""Properties here are about values, not speed: how long one example takes depends on the machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("hardware", deadline=None)
settings.load_profile("hardware")
