"""What voids a run: each disturbance alone, for its own reason; and nothing where there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servingplan.benchmarking.run import Probes, Seen, VoidReason
from servingplan.benchmarking.validity import RULES, Expected, judge
from support.benches import a_client, a_seen, an_engine_seen, expected


def test_a_good_run_counts_and_everything_was_judged() -> None:
    assert judge(a_seen(), expected()) == ((), ())


FAULTS = {
    "a client that sends too little": (a_seen(client=a_client(dispatch_rate=4.8)), VoidReason.DISPATCH_RATE),
    "a client that sends late": (a_seen(client=a_client(lag_p99=0.2)), VoidReason.DISPATCH_LAG),
    "a client at the end of its core": (a_seen(client=a_client(cores=0.97)), VoidReason.CLIENT_BUSY),
    "short outputs": (a_seen(client=a_client(output_tokens=120.0)), VoidReason.OUTPUT_TOKENS),
    "prompts of other lengths": (a_seen(client=a_client(input_tokens=900.0)), VoidReason.INPUT_TOKENS),
    "a warm cache": (a_seen(engine=an_engine_seen(prefix_hit_share=0.4)), VoidReason.WARM_CACHE),
    "compilation in the window": (a_seen(client=a_client(silence=4.2, silences=1)), VoidReason.COMPILATION),
    "requests of others": (a_seen(others=60.0), VoidReason.OTHER_REQUESTS),
    "a neighbour's load": (a_seen(probes=Probes(before=0.5, after=0.8)), VoidReason.NEIGHBOUR),
    "a neighbour that left": (a_seen(probes=Probes(before=0.8, after=0.5)), VoidReason.NEIGHBOUR),
}


@pytest.mark.parametrize(("seen", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_disturbance_voids_a_run_for_its_own_reason_alone(seen: Seen, reason: VoidReason) -> None:
    voids, _ = judge(seen, expected())
    assert [void.reason for void in voids] == [reason]
    assert voids[0].message


WITHIN = {
    "two percent": (a_seen(client=a_client(dispatch_rate=4.91)), expected()),
    "fifty milliseconds": (a_seen(client=a_client(lag_p99=0.050)), expected()),
    "one long silence of an engine at ease": (a_seen(client=a_client(silence=1.5)), expected()),
    "an engine that always pauses": (a_seen(client=a_client(silence=3.0, silences=9)), expected()),
    "a probe of the cluster": (a_seen(others=2.0), expected()),
    "a workload with a common prefix": (a_seen(engine=an_engine_seen(prefix_hit_share=0.42)),
                                        expected(prefix_hit_share=0.4)),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "asked"), WITHIN.values(), ids=WITHIN)
def test_what_lies_within_the_limits_counts(seen: Seen, asked: Expected) -> None:
    assert judge(seen, asked) == ((), ())


def test_a_tight_ttft_allows_less_lag() -> None:
    seen = a_seen(client=a_client(lag_p99=0.030))
    assert judge(seen, expected(ttft_limit_s=1.5))[0] == ()
    assert judge(seen, expected(ttft_limit_s=0.2))[0][0].reason is VoidReason.DISPATCH_LAG


def test_a_workload_with_a_common_prefix_is_not_measured_with_a_cold_cache() -> None:
    voids, _ = judge(a_seen(), expected(prefix_hit_share=0.4))
    assert [void.reason for void in voids] == [VoidReason.COLD_CACHE]


def test_what_is_not_readable_is_said_not_to_be_judged() -> None:
    blind = replace(a_seen(client=a_client(cores=None, silence=None)), engine=None, probes=None, others=None)
    voids, unjudged = judge(blind, expected(input_tokens=None))
    assert voids == ()
    assert set(unjudged) == {
        VoidReason.CLIENT_BUSY, VoidReason.INPUT_TOKENS, VoidReason.WARM_CACHE, VoidReason.COLD_CACHE,
        VoidReason.COMPILATION, VoidReason.OTHER_REQUESTS, VoidReason.NEIGHBOUR,
    }  # fmt: skip


def test_every_reason_has_its_rule() -> None:
    assert sorted(rule.reason for rule in RULES) == sorted(VoidReason)
