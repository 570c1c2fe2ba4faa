"""For all tests: an interrupt interrupts, also where a shell that runs them in the background has it ignored."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Inherited, and children would inherit it from here: those that a test interrupts would go on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
