"""Clients of the outside systems: one small asynchronous client each, without decisions of their own."""
