"""How kopf logs in: with the operator's own connections, so that there is one pool and one way to authorize.

In: the operator's `Connection`. Out: what a ``@kopf.on.login`` handler returns. It opens nothing by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from servingplan.clients.connection import Connection

Login = Callable[..., Awaitable[kopf.AiohttpSession]]


def login_with(connection: Connection) -> Login:
    """Make the login handler for a connection: ``kopf.on.login(registry=...)(login_with(connection))``.

    kopf closes a session when the server refused it and then logs in again; hence a new session each time, and
    credentials that are read afresh.
    """
    logged_in = False

    async def login(**_: Any) -> kopf.AiohttpSession:
        nonlocal logged_in
        if logged_in:
            connection.forget_credentials()
        logged_in = True
        return kopf.AiohttpSession(
            server=connection.server,
            aiohttp_session=connection.new_session(),
            default_namespace=connection.namespace,
        )

    return login
