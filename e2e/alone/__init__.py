"""Tests that compare instants to fractions of a second: nothing else may run on the machine (`make e2e-alone`)."""
