"""Whether a variant may take a baseline's place: one set of questions, two servers, one rule.

In: an evaluation set and two servers, or the results of somebody's own evaluation. Out: a verdict with its reason, and
what every item said. In reading order: `bounds`, `verdict` (the rule); `choice`, `scorers`, `items` (the set);
`record` (what is kept), `asking` (the servers), `results` (somebody's own), `evaluation` (all of it together).
"""
