"""What a policy costs and where it fails, on virtual time: a fluid model of many tenants at once.

In reading order: traces (recorded rates), arrivals (requests inside a recorded step), workload (demand in replicas),
windows (means and extremes over time), fleet (replicas that start, serve and drain; queues), history (what foresight
learned by each morning), policies, reference (what clairvoyance would cost), scorecard and curves (what came of it).

One plan against a trace, on the same fleet: trace, world, servers (the place of what serves), playing; operating (the
operator), rivals, tuning; scenarios, standing, comparison.

Apart from these, replicas of vLLM token by token: tokens, tokens_blocks, tokens_scheduler, tokens_replica, token_fleet;
tokens_drawn, tokens_capacity, tokens_played (what a policy had, served token by token).

Numbers go in, numbers come out: nothing here reads a clock.
"""
