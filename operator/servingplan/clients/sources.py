"""The sources of metrics that whoever installs the operator allows.

In: a YAML file, named by the setting ``sources_file``, and the mounted Secrets that it refers to. Out: `Source` values,
and what authorizes a request to one. A plan names a source and states neither address nor query.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from servingplan.clients.engine_series import NoReading
from servingplan.errors import UsageError
from servingplan.planning.reasons import Reason
from servingplan.planning.units import parse_duration

DEFAULT_TIMEOUT_S = 5.0
"""A Prometheus that answers slower than this is slower than its scrapes, and its answers come too late."""

LONGEST_TIMEOUT_S = 9.0
"""So that one poll ends before the next begins."""

_SOURCE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,127}")
_OURS = frozenset({"namespace", "pod", "le", "engine", "reason", "finished_reason"})
"""Labels that the queries use themselves."""

_OWN_HEADERS = frozenset({"authorization", "host", "content-type", "content-length", "cookie", "transfer-encoding"})


def _address(value: str) -> str:
    try:
        parts = urlsplit(value)
        _ = parts.port  # raises for what is no port
    except ValueError as error:
        raise ValueError(f"{value!r} is no address ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{value!r} is no address; write for example https://prometheus.monitoring.svc:9090")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("an address here has no user, password, query or fragment; credentials are files")
    return value.rstrip("/")


def _seconds(value: object) -> object:
    return parse_duration(value).total_seconds() if isinstance(value, str) else value


def _header(value: str) -> str:
    if not _HEADER_NAME.fullmatch(value) or value.lower() in _OWN_HEADERS:
        raise ValueError(f"{value!r} cannot be a tenant's header; it is for example X-Scope-OrgID")
    return value


def _printable(value: str) -> str:
    if not value or not value.isprintable() or not value.isascii():
        raise ValueError("it must be printable ASCII, and not empty")
    return value


def _labels(value: Mapping[str, str]) -> Mapping[str, str]:
    for label in value:
        if not _LABEL_NAME.fullmatch(label) or label in _OURS:
            raise ValueError(f"{label!r} cannot be matched; name labels other than {', '.join(sorted(_OURS))}")
    return value


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class BasicAuth(_Strict):
    """Files that hold a user's name and password."""

    username_file: Path
    password_file: Path


class Tenant(_Strict):
    """The header that tells a shared store whose series are meant."""

    name: Annotated[str, AfterValidator(_header)]
    value: Annotated[str, AfterValidator(_printable)]


class Source(_Strict):
    """One Prometheus, or what answers like one. timeout: seconds; a duration such as ``5s`` in the file.

    matchers: labels that every series must have, where one store holds several clusters.
    """

    url: Annotated[str, AfterValidator(_address)]
    ca_file: Path | None = None
    bearer_token_file: Path | None = None
    basic_auth: BasicAuth | None = None
    tenant: Tenant | None = None
    timeout: Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=LONGEST_TIMEOUT_S)] = DEFAULT_TIMEOUT_S
    matchers: Annotated[Mapping[str, str], AfterValidator(_labels)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_consistent(self) -> Source:
        if self.bearer_token_file and self.basic_auth:
            raise ValueError("bearerTokenFile and basicAuth exclude each other")
        if self.ca_file and not self.url.startswith("https:"):
            raise ValueError("caFile needs an address that begins with https:")
        return self


class _File(_Strict):
    sources: Mapping[str, Source]


def read_sources(path: Path) -> Mapping[str, Source]:
    """The sources of a file, by name. Raises UsageError that names every problem."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the sources file {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"the sources file {path} is no YAML: {' '.join(str(error).split())}") from error
    return parse_sources(document, where=str(path))


def parse_sources(document: Any, *, where: str) -> Mapping[str, Source]:
    """The sources of a parsed file. where: what messages begin with. Raises UsageError that names every problem."""
    problems: list[str] = []
    sources: Mapping[str, Source] = {}
    try:
        sources = _File.model_validate(document).sources
    except ValidationError as error:
        problems.extend(_sentence(problem) for problem in error.errors())
    stated = document.get("sources") if isinstance(document, dict) else None
    problems.extend(
        f"sources: {name!r} is no name; use lower-case letters, digits and dashes"
        for name in (stated if isinstance(stated, dict) else ())
        if not (isinstance(name, str) and _SOURCE_NAME.fullmatch(name))
    )
    if problems:
        raise UsageError(f"{where}: " + "; ".join(problems))
    return sources


def _sentence(problem: Any) -> str:
    path = ".".join(str(part) for part in problem["loc"])
    text = str(problem["msg"]).removeprefix("Value error, ")
    return f"{path}: {text}" if path else text


class Authorization:
    """What authorizes requests to one source. Files are mounted Secrets: read again whenever they change."""

    def __init__(self, name: str, source: Source) -> None:
        self._name = name
        self._source = source
        self._read: dict[Path, tuple[tuple[int, int, int], str]] = {}
        self._trusted: tuple[str, ssl.SSLContext] | None = None

    def headers(self) -> dict[str, str]:
        """The headers of the next request. Raises `NoReading` where a file cannot be used."""
        headers: dict[str, str] = {}
        source = self._source
        if source.bearer_token_file is not None:
            headers["Authorization"] = f"Bearer {self._secret('bearerTokenFile', source.bearer_token_file)}"
        if source.basic_auth is not None:
            user = self._secret("basicAuth.usernameFile", source.basic_auth.username_file)
            password = self._secret("basicAuth.passwordFile", source.basic_auth.password_file)
            headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
        if source.tenant is not None:
            headers[source.tenant.name] = source.tenant.value
        return headers

    def trusted(self) -> ssl.SSLContext | None:
        """Whom to trust: the same object until the CA's file changes. None: the address is not https.

        Raises `NoReading` where the file cannot be used.
        """
        if not self._source.url.startswith("https:"):
            return None
        file = self._source.ca_file
        certificates = self._text("caFile", file) if file is not None else ""
        if self._trusted is None or self._trusted[0] != certificates:
            try:
                context = ssl.create_default_context(cadata=certificates or None)
            except (ssl.SSLError, ValueError) as error:
                raise self._unusable("caFile", file, f"holds no certificate in PEM form ({error})") from error
            # Authorities made by common tools lack the extensions that the strict mode wants.
            context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
            self._trusted = (certificates, context)
        return self._trusted[1]

    def _secret(self, field: str, path: Path) -> str:
        text = self._text(field, path).strip()
        if not text.isprintable() or not text:
            raise self._unusable(field, path, "is empty, or more than one line")
        return text

    def _text(self, field: str, path: Path) -> str:
        try:
            found = path.stat()  # of what a mounted Secret's link leads to at present
            version = (found.st_mtime_ns, found.st_ino, found.st_size)
            known = self._read.get(path)
            if known is None or known[0] != version:
                known = (version, path.read_text(encoding="utf-8"))
                self._read[path] = known
            return known[1]
        except OSError as error:
            raise self._unusable(field, path, f"cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise self._unusable(field, path, "is no text") from error

    def _unusable(self, field: str, path: Path | None, why: str) -> NoReading:
        return NoReading(Reason.METRICS_REFUSED, f"source {self._name}: {field} {path} {why}")
