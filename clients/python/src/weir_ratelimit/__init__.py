"""The client of Weir, the rate-limit decision service.

Importing it loads no framework and no OpenTelemetry. Middleware is in `asgi`, `fastapi`,
`django`, `drf` and `flask`, and the fakes for tests are in `testing`.
"""

from typing import TYPE_CHECKING, Any

from ._address import client_address
from ._client import Client
from ._decision import Decision, Http, LimitStatus
from ._errors import ClosedError, ConfigurationError, DeniedError, MistakeError, OutageError, WeirError
from ._options import Policy, Tls

if TYPE_CHECKING:
    from ._async_client import AsyncClient

__all__ = [
    "AsyncClient",
    "Client",
    "ClosedError",
    "ConfigurationError",
    "Decision",
    "DeniedError",
    "Http",
    "LimitStatus",
    "MistakeError",
    "OutageError",
    "Policy",
    "Tls",
    "WeirError",
    "client_address",
]


def __getattr__(name: str) -> Any:
    """Loads the client for asyncio when it is used first: programs with threads need no asyncio."""
    if name != "AsyncClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._async_client import AsyncClient  # noqa: PLC0415

    globals()[name] = AsyncClient
    return AsyncClient
