"""A workload from what was logged of it: arrivals by hour of the week, lengths, and the plan that they suggest.

Place in the flow: request logs (``reading``, ``formats``) or a Prometheus (``history``) are counted (``tally``),
become the ordinary week (``profile``), and that becomes ConfigMaps and a plan (``manifests``). Numbers here are
estimates of what comes; what is decided from a plan stands in ``planning``.
"""
