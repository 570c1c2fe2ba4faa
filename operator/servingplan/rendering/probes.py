"""When a replica counts as started, ready and alive, and how it ends.

In: an `Engine`. Out: the container's probes and hook, and the pod's grace. Ready means verified: readiness only
begins after the startup probe, which is one real completion.
"""

from __future__ import annotations

import math
from datetime import timedelta

from servingplan.planning.target import Engine, StartupCheck
from servingplan.rendering.engine import API_KEY_VARIABLE
from servingplan.rendering.metadata import Manifest

PORT_NAME = "http"
"""The container port, the Service's port and what both probes and scrapers refer to."""

PRE_STOP = timedelta(seconds=15)
"""How long a pod that ends still takes requests: vLLM stays ready while it shuts down and answers new requests
with an error, so every proxy must have forgotten the endpoint before vLLM hears of its end."""

TEARDOWN = timedelta(seconds=15)
"""What vLLM needs to end after its last request: about 10 s were measured for workers and engine."""

STARTUP_PERIOD = timedelta(seconds=10)
"""How often a starting engine is asked, and how long one try may take: then tries never add up to more than the
start timeout. A first token that takes longer is not lost, since what it compiled stays for the next try."""

_CLIENT_MARGIN_S = 2
"""The program gives up this much before the kubelet ends it, so that an event says what it waited for."""

# Standard library only, because it runs in whatever Python the image has. http.client ignores proxy settings.
# What it says goes to the pod's event; the key never does.
COMPLETION_PROGRAM = f"""\
import http.client, json, os, sys

port, model, limit = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
headers = {{"Content-Type": "application/json"}}
if os.environ.get("{API_KEY_VARIABLE}"):
    headers["Authorization"] = "Bearer " + os.environ["{API_KEY_VARIABLE}"]
wanted = json.dumps({{"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}})
try:
    connection = http.client.HTTPConnection("localhost", port, timeout=limit)
    connection.request("POST", "/v1/completions", wanted, headers)
    response = connection.getresponse()
    status, answer = response.status, response.read()
except (OSError, http.client.HTTPException) as error:
    sys.exit("no completion yet: port %d: %s: %s" % (port, type(error).__name__, error))
if status != 200:
    sys.exit("no completion: HTTP %d: %s" % (status, answer[:300].decode(errors="replace")))
try:
    tokens = json.loads(answer)["usage"]["completion_tokens"]
except (ValueError, KeyError, TypeError):
    sys.exit("no completion: not an answer of vLLM: %s" % answer[:300].decode(errors="replace"))
if not isinstance(tokens, int) or tokens < 1:
    sys.exit("no completion: the model gave %r tokens" % (tokens,))
"""
"""Gets one token, or ends with a sentence and exit code 1. Arguments: port, served model name, seconds."""


def startup_probe(engine: Engine) -> Manifest:
    """The probe whose budget, tries x period, is the start timeout."""
    period = _seconds(STARTUP_PERIOD)
    return _startup_check(engine) | {
        "periodSeconds": period,
        "timeoutSeconds": period,
        "failureThreshold": max(1, math.ceil(engine.start_timeout / STARTUP_PERIOD)),
    }


def readiness_probe() -> Manifest:
    """Out of the Service after 15 s without an answer: a busy engine may be late once, a dead one is 503."""
    return _health() | {"periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3}


def liveness_probe() -> Manifest:
    """Restarted after a minute without an answer.

    A restart costs the requests in flight and a whole lead time, so it needs more than a stall; an engine that
    is really dead answers 503 at once, and has left the Service long before.
    """
    return _health() | {"periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": 6}


def lifecycle() -> Manifest:
    """A sleep before the signal, by the kubelet itself: the image needs no shell for it."""
    return {"preStop": {"sleep": {"seconds": _seconds(PRE_STOP)}}}


def grace(engine: Engine) -> timedelta:
    """From the decision to end a pod until it is killed: sleep, drain and teardown, to the second."""
    return timedelta(seconds=_seconds(PRE_STOP + engine.drain_timeout + TEARDOWN))


def _startup_check(engine: Engine) -> Manifest:
    if engine.startup_check is StartupCheck.HEALTH:
        return _health()
    limit = _seconds(STARTUP_PERIOD) - _CLIENT_MARGIN_S
    # -I and -S: the image's own site packages would take longer to look at than the request takes.
    command = ["python3", "-I", "-S", "-c", COMPLETION_PROGRAM]
    return {"exec": {"command": [*command, str(engine.port), engine.served_model_name, str(limit)]}}


def _health() -> Manifest:
    return {"httpGet": {"path": "/health", "port": PORT_NAME}}


def _seconds(duration: timedelta) -> int:
    return math.ceil(duration.total_seconds())
