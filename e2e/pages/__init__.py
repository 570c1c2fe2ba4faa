"""Tests of the pages that `-o html` makes, in a real browser (`make e2e-pages`)."""
