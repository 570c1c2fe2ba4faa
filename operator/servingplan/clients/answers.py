"""What the API server answered, as one of the package's errors with a sentence for people.

In: status code, headers and body of an answer that is no success. Out: an exception; nothing is raised here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from servingplan.errors import ClusterError, Conflict, NotFound, Refused, Unreachable

_MANAGER = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"')
_MARKUP = re.compile(r"<[^>]*>")
_SHOWN_CHARACTERS = 300
"""How much of a body that is no Status is quoted: a proxy's HTML page says little, and says it early."""


class TryLater(Unreachable):
    """The server asks to come back later.

    retry_after_s: seconds that the server asked for; 0 where it named none.
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ApplyConflict(Conflict):
    """A server-side apply without force met fields that other managers own.

    managers: their names, sorted, each once. fields: paths as the server spells them (``.spec.replicas``).
    """

    def __init__(self, message: str, *, managers: tuple[str, ...], fields: tuple[str, ...]) -> None:
        super().__init__(message)
        self.managers = managers
        self.fields = fields


class KindNotServed(NotFound):
    """The server does not serve this kind or this part of its API (a CRD is missing or was removed)."""


def error_from_answer(*, what: str, code: int, headers: Mapping[str, str], body: bytes) -> ClusterError:
    """Turn an answer with a status of 300 or more into an error.

    what: the request as a phrase, for example ``apply of Deployment llm/chat``.
    """
    status = _status_of(body)
    said = str(status.get("message") or _quoted(body) or "no explanation")
    if code == 404:
        return _not_found(what, said, status)
    if code == 409:
        return _conflict(what, said, status)
    if code == 410:
        return Conflict(f"{what}: what was read is too old ({said}); it is read again")
    if code == 429 or code >= 500:
        wait_s = _retry_after_s(headers, status)
        return TryLater(f"{what}: the API server could not serve it now ({code}): {said}", retry_after_s=wait_s)
    return Refused(f"{what} was refused ({code}): {said}{_remedy(code)}")


def _remedy(code: int) -> str:
    if code == 401:
        return "; the credentials are missing or no longer valid, check the token or the kubeconfig"
    if code == 403:
        return "; check RBAC, quotas and admission policies"
    return ""


def _not_found(what: str, said: str, status: Mapping[str, Any]) -> NotFound:
    details = status.get("details")
    if isinstance(details, Mapping) and details.get("name"):
        return NotFound(f"{what}: it does not exist ({said})")
    return KindNotServed(f"{what}: the API server does not serve this ({said}); check that its CRD is installed")


def _conflict(what: str, said: str, status: Mapping[str, Any]) -> Conflict:
    causes = [c for c in (status.get("details") or {}).get("causes") or () if isinstance(c, Mapping)]
    owned = [cause for cause in causes if cause.get("reason") == "FieldManagerConflict"]
    if not owned:
        return Conflict(f"{what}: it changed in between ({said}); it is read and decided again")
    texts = [str(cause.get("message", "")) for cause in owned]
    managers = sorted({name for text in texts for name in _MANAGER.findall(text)})
    fields = sorted({str(cause.get("field", "")) for cause in owned} - {""})
    return ApplyConflict(
        f"{what}: {', '.join(fields)} is owned by {', '.join(managers)} ({said})",
        managers=tuple(managers),
        fields=tuple(fields),
    )


def _status_of(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) and parsed.get("kind") == "Status" else {}


def _quoted(body: bytes) -> str:
    text = " ".join(_MARKUP.sub(" ", body.decode("utf-8", errors="replace")).split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " ..."


def _retry_after_s(headers: Mapping[str, str], status: Mapping[str, Any]) -> float:
    header = headers.get("Retry-After")
    if header is not None:
        return _seconds(header)
    details = status.get("details")
    return _seconds(str(details.get("retryAfterSeconds", 0))) if isinstance(details, Mapping) else 0.0


def _seconds(text: str) -> float:
    """Seconds of a Retry-After header, in either of its two forms; 0 where it is neither."""
    try:
        seconds = float(text)
    except ValueError:
        return _seconds_until_date(text)
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def _seconds_until_date(text: str) -> float:
    try:
        instant = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())
