"""Capacity: the goodput ramp over ``vllm bench serve``, what bound it, and what a reserve does at night.

The decisions (`goodput`, `statistics`, `level`, `search`, `validity`, `bottleneck`) are pure: recorded runs in, the
next step or a finding out. What touches servers, processes and files is `measuring`, `ramp`, `prompts` and `record`.
"""
