"""Pure builders: a plan becomes Kubernetes objects as plain dicts, never text.

Reading order: ``metadata``, ``merge``, ``engine`` (vLLM's arguments and environment), ``probes``, ``volumes``,
``comparison``, ``deployment``, ``service``, ``disruption``, ``running``, ``objects`` (all of them), ``drain``.
Nothing here reads a clock, draws a random number, logs, or does I/O; the same plan gives the same bytes.
"""
