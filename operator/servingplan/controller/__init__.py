"""The operator: observe, decide, render, apply, report, with kopf at the edge.

``app`` makes everything; ``handlers`` and ``watches`` bring in what changes, ``store`` keeps what decides,
``queue`` and ``wakeups`` say which plan is next; ``reconcile`` is one pass: ``observe`` (``targets``, ``pods``,
``field_owners``), ``planning.decision``, ``act`` and ``apply``, ``report`` (``events``, ``metrics``). ``leader``
says who may write.
"""
