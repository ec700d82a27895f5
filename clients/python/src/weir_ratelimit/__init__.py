"""The client of Weir, the rate-limit decision service.

Importing it loads no framework and no OpenTelemetry. Middleware is in `asgi`, `fastapi`,
`django`, `drf` and `flask`, and the fakes for tests are in `testing`.
"""

from typing import TYPE_CHECKING, Any

from ._client import Client
from ._decision import Decision, Http, LimitStatus
from ._errors import (
    BudgetRefusedError,
    ClosedError,
    ConfigurationError,
    DeniedError,
    LeaseLostError,
    LeaseRefusedError,
    MistakeError,
    OutageError,
    WeirError,
)
from ._options import Policy, Tls

if TYPE_CHECKING:
    from ._address import client_address
    from ._async_client import AsyncClient
    from ._async_lease import AsyncLease
    from ._async_meter import AsyncMeter
    from ._costs import Cost
    from ._lease import Lease
    from ._meter import Meter

__all__ = [
    "AsyncClient",
    "AsyncLease",
    "AsyncMeter",
    "BudgetRefusedError",
    "Client",
    "ClosedError",
    "ConfigurationError",
    "Cost",
    "Decision",
    "DeniedError",
    "Http",
    "Lease",
    "LeaseLostError",
    "LeaseRefusedError",
    "LimitStatus",
    "Meter",
    "MistakeError",
    "OutageError",
    "Policy",
    "Tls",
    "WeirError",
    "client_address",
]


#: What is loaded when it is used first: many programs need no asyncio, leases, budgets or addresses.
_LATER = {
    "AsyncClient": "._async_client",
    "AsyncLease": "._async_lease",
    "AsyncMeter": "._async_meter",
    "Cost": "._costs",
    "Lease": "._lease",
    "Meter": "._meter",
    "client_address": "._address",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    found = globals()[name] = getattr(importlib.import_module(_LATER[name], __name__), name)
    return found
