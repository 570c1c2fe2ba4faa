"""How much hardware a model and a workload need: pure numbers, from a model's shape to GPUs.

In reading order: `model` (what is served), `engine` (how), `parallelism` (over which GPUs), `weights`, `pages`,
`kv_cache`, `margins` and `memory` (what fits), `lengths` and `traffic` (what is asked), `roofline` (how fast),
`replicas` (how many), `layouts` (the smallest that does it), `storage`, `study` (all of it, for a report).

No I/O, no clock, no randomness: what is read from files comes from `servingplan.inventory`.
"""
