"""ServingPlan: vLLM replicas that are ready before the ramp.

The data flow, package by package: ``api`` (the wire) resolves a spec into a ``Plan``; ``planning`` (pure)
turns the plan, an observation and an instant into a ``Decision``; ``rendering`` (pure) turns plan and
decision into Kubernetes objects and status; ``controller`` observes and applies; ``cli`` and ``reporting``
show the same decision to people.
"""

__version__ = "0.1.0"
