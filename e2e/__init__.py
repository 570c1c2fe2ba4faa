"""Tests against a real Kubernetes. A package, so that ``e2e.support`` and ``tests/support`` do not hide each other."""
