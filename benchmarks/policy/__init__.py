"""The policy benchmark: `python -m benchmarks.policy`."""
