"""The Go templates of our stages: what a kubelet would write on a node and on a pod.

In kwok's templates, ``.`` is the object, ``Quote``, ``Now``, ``NodeIPWith`` and the like are kwok's, the rest is sprig.
Pure text; `stages` puts it into Stage objects. These are templates of patches: kwok takes no other form.
"""

from __future__ import annotations

_LAYOUT = "2006-01-02T15:04:05.000Z07:00"


def _instant(duration: str) -> str:
    """Now plus ``duration`` (an expression that gives text as in ``+90ms``), in UTC."""
    return f'{{{{ dateInZone "{_LAYOUT}" (dateModify ({duration}) now) "UTC" | Quote }}}}'


def _after_ms(milliseconds: str) -> str:
    return _instant(f'printf "+%dms" ({milliseconds})')


def _drawn(bounds_ms: tuple[int, int]) -> str:
    # sprig's upper bound is exclusive, and it fails on an empty range.
    lower, upper = bounds_ms
    return f"randInt {lower} {upper + 1}"


def instant(annotation: str, bounds_ms: tuple[int, int]) -> str:
    """A patch of metadata that sets an annotation to now plus a drawn duration."""
    return f"annotations:\n  {annotation}: {_after_ms(_drawn(bounds_ms))}\n"


def timetable(pull_ms: tuple[int, int], load_ms: tuple[int, int], *, runs_at: str, ready_at: str, load_key: str) -> str:
    """A patch of metadata that sets when a pod runs, when it is ready, and how long it loads."""
    return (
        f"{{{{ $pull := {_drawn(pull_ms)} }}}}\n"
        f"{{{{ $load := {_drawn(load_ms)} }}}}\n"
        "annotations:\n"
        f"  {runs_at}: {_after_ms('$pull')}\n"
        f"  {ready_at}: {_after_ms('add $pull $load')}\n"
        f'  {load_key}: "{{{{ $load }}}}ms"\n'
    )


def restart(*, ready_at: str, load_key: str) -> str:
    """A patch of metadata for a container that starts again: it loads as long as it did before."""
    duration = f'printf "+%s" (index .metadata.annotations "{load_key}")'
    return f"annotations:\n  {ready_at}: {_instant(duration)}\n"


_NOT_READY = """
- type: Ready
  status: "False"
  reason: ContainersNotReady
  message: containers with unready status
  lastTransitionTime: {{ Now | Quote }}
- type: ContainersReady
  status: "False"
  reason: ContainersNotReady
  message: containers with unready status
  lastTransitionTime: {{ Now | Quote }}
"""

PULLING = (
    """
startTime: {{ Now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
{{ $hostNetwork := or .spec.hostNetwork false }}
podIP: {{ PodIPWith .spec.nodeName $hostNetwork .metadata.uid .metadata.name .metadata.namespace | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
"""
    + _NOT_READY
    + """
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: {waiting: {reason: ContainerCreating}}
{{ end }}
"""
)

_INIT_ENDED = """
{{ if .spec.initContainers }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  {{ if eq (or .restartPolicy "") "Always" }}
  started: true
  state: {running: {startedAt: {{ Now | Quote }}}}
  {{ else }}
  started: false
  state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}}}
  {{ end }}
{{ end }}
{{ end }}
"""

# What was seen of a container before: its restarts stay, and so does how it ended last.
_CONTAINERS = """
{{ $pod := . }}
containerStatuses:
{{ range $index, $container := .spec.containers }}
{{ $before := index $pod.status.containerStatuses $index }}
- name: {{ $container.name | Quote }}
  image: {{ $container.image | Quote }}
  imageID: ""
  {{ with $before.lastState }}lastState: {{ toJson . }}{{ end }}
"""

RUNNING = (
    "phase: Running"
    + _INIT_ENDED
    + _CONTAINERS
    + """
  ready: false
  started: false
  restartCount: {{ $before.restartCount }}
  state: {running: {startedAt: {{ Now | Quote }}}}
{{ end }}
"""
)

READY = (
    """
conditions:
- {type: Ready, status: "True", reason: "", message: "", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "True", reason: "", message: "", lastTransitionTime: {{ Now | Quote }}}
"""
    + _CONTAINERS
    + """
  ready: true
  started: true
  restartCount: {{ $before.restartCount }}
  state: {{ toJson $before.state }}
{{ end }}
"""
)

IMAGE_PULL_BACK_OFF = (
    _CONTAINERS
    + """
  ready: false
  started: false
  restartCount: 0
  state:
    waiting:
      reason: ImagePullBackOff
      message: {{ printf "Back-off pulling image %s: not found" $container.image | Quote }}
{{ end }}
"""
)

CRASH_LOOP_BACK_OFF = (
    "conditions:"
    + _NOT_READY
    + """
{{ $pod := . }}
containerStatuses:
{{ range $index, $container := .spec.containers }}
{{ $before := index $pod.status.containerStatuses $index }}
- name: {{ $container.name | Quote }}
  image: {{ $container.image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: {{ add $before.restartCount 1 }}
  lastState:
    terminated:
      exitCode: 1
      reason: Error
      startedAt: {{ $before.state.running.startedAt | Quote }}
      finishedAt: {{ Now | Quote }}
  state:
    waiting:
      reason: CrashLoopBackOff
      message: {{ printf "back-off 10s restarting failed container=%s" $container.name | Quote }}
{{ end }}
"""
)

ENDED = (
    "phase: Succeeded\nconditions:"
    + _NOT_READY
    + """
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: {terminated: {exitCode: 0, reason: Completed, finishedAt: {{ Now | Quote }}}}
{{ end }}
"""
)

NODE_READY = """
phase: Running
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ Now | Quote }}
  lastTransitionTime: {{ Now | Quote }}
{{ end }}
addresses:
- {type: Hostname, address: {{ .metadata.name | Quote }}}
nodeInfo:
  architecture: amd64
  operatingSystem: linux
  kubeletVersion: {{ printf "kwok-%s" Version | Quote }}
  containerRuntimeVersion: {{ printf "kwok-%s" Version | Quote }}
  kernelVersion: ""
  osImage: ""
  bootID: ""
  machineID: ""
  systemUUID: ""
  kubeProxyVersion: ""
"""
