"""What valid evidence kinds keep beyond types, each rule once: as ``rules`` has them for the plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from servingplan.api.rules import Rule
from servingplan.planning.units import parse_duration

LONGEST = timedelta(hours=24)
"""A run's longest: the operator keeps a trial's GPUs for so long."""

NAME_PATTERN = "[a-z]([-a-z0-9]{0,38}[a-z0-9])?"

EVIDENCE_NAME = Rule(
    cel=f"self.metadata.name.matches('^{NAME_PATTERN}$')",
    message="metadata.name becomes a part of the names of a Service and of Jobs: use at most 40 lower-case letters, "
    "digits and '-', start with a letter and end with a letter or digit",
    reason="InvalidName",
    holds=lambda found: re.fullmatch(NAME_PATTERN, found["metadata"]["name"]) is not None,
    at="metadata.name",
)
ONE_FILE = Rule(
    cel="has(self.configMap) != has(self.persistentVolumeClaim)",
    message="state exactly one of configMap and persistentVolumeClaim: the file is in one of them",
    reason="OneFile",
    holds=lambda file: ("configMap" in file) != ("persistentVolumeClaim" in file),
)
ONE_MEASURED = Rule(
    cel="has(self.planRef) != has(self.service)",
    message="state exactly one of planRef (a pool of its own with that plan's engine is measured) and service (what "
    "serves already is)",
    reason="OneMeasured",
    holds=lambda spec: ("planRef" in spec) != ("service" in spec),
)
SERVICE_WHEN_QUIET = Rule(
    cel="!has(self.service) || has(self.quietHoursOf)",
    message="service needs quietHoursOf: what serves is measured only while the plan of that name is quiet, or its "
    "users would wait",
    reason="QuietHoursMissing",
    holds=lambda spec: "service" not in spec or "quietHoursOf" in spec,
)
SERVICE_SIZE = Rule(
    cel="!has(self.service) || self.poolSizes == [1]",
    message="poolSizes is for planRef: the pool behind a service has the size that service.replicas states",
    reason="PoolSizes",
    holds=lambda spec: "service" not in spec or spec["poolSizes"] == [1],
    at="poolSizes",
)
LONGEST_LIMIT = Rule(
    cel="duration(self) <= duration('1440m')",
    message="must be at most 24h: a ramp that finds nothing in a day was asked for what cannot be measured",
    reason="InvalidDuration",
    holds=lambda text: parse_duration(text) <= LONGEST,
)
ONE_COMPARISON = Rule(
    cel="has(self.planRef) != (has(self.baseline) || has(self.variant))",
    message="state either planRef (its engine, in a pool of its own, against what the plan serves) or both baseline "
    "and variant (what serves already)",
    reason="OneComparison",
    holds=lambda spec: ("planRef" in spec) != ("baseline" in spec or "variant" in spec),
)
BOTH_SIDES = Rule(
    cel="has(self.baseline) == has(self.variant)",
    message="baseline and variant go together: a variant is compared with something",
    reason="BothSides",
    holds=lambda spec: ("baseline" in spec) == ("variant" in spec),
)
ONE_QUESTIONER = Rule(
    cel="has(self.set) != has(self.container)",
    message="state exactly one of set (items that servingplan asks and scores) and container (a program of yours)",
    reason="OneQuestioner",
    holds=lambda spec: ("set" in spec) != ("container" in spec),
)

RULES: Mapping[str, Rule] = {rule.cel: rule for rule in list(globals().values()) if isinstance(rule, Rule)}
"""Every rule by its CEL text."""
