"""The hook of LiteLLM's proxy: token budgets that are asked before a model answers, and settled after it.

`litellm_settings: { callbacks: weir_budget.hook }` names the hook of a file `weir_budget.py` beside the configuration.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from fastapi import HTTPException
from litellm import token_counter
from litellm.integrations.custom_logger import CustomLogger

from ._async_client import AsyncClient
from ._async_meter import AsyncMeter
from ._costs import Cost
from ._errors import BudgetRefusedError, OutageError

#: Where a request keeps the name of its meter. The meter itself must reach no logger, which would copy it.
_KEY = "weir_budget"
#: Meters of requests of which neither the success nor the failure was told are forgotten: what they hold comes back.
_MOST = 10_000


class WeirBudget(CustomLogger):  # type: ignore[misc]
    """Asks Weir for the tokens of each request, and settles what was used.

    `input`, `output` and `total` are the names of the costs in the strategy; `None` leaves one out. A request without
    `max_tokens` is granted what fits of `assumed_output`, and its `max_tokens` is set to that.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        resource: str,
        consumer: Callable[[Any, dict[str, Any]], str | None],
        attributes: Callable[[Any, dict[str, Any]], Mapping[str, str]] | None = None,
        input: str | None = "input",
        output: str | None = "output",
        total: str | None = None,
        assumed_output: int = 4096,
        hold_for: timedelta | float = timedelta(minutes=10),
    ) -> None:
        super().__init__()
        self._client, self._resource, self._consumer, self._attributes = client, resource, consumer, attributes
        self._input, self._output, self._total = input, output, total
        self._assumed, self._hold_for = assumed_output, hold_for
        self._meters: dict[str, AsyncMeter] = {}

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """Holds the estimate of a request. A denial is an HTTPException with the headers of the decision."""
        prompt = _prompt_tokens(data)
        bound = data.get("max_completion_tokens") or data.get("max_tokens") or data.get("max_output_tokens")
        try:
            meter = await self._client.meter(
                self._resource,
                self._consumer(user_api_key_dict, data) or "",
                estimate=self._estimate(prompt, bound),
                hold_for=self._hold_for,
                attributes=self._attributes(user_api_key_dict, data) if self._attributes else None,
                headers=True,
            )
        except BudgetRefusedError as refused:
            http = refused.decision.http()
            text = refused.decision.message or "the token budget is used up"
            raise HTTPException(http.status or 429, detail={"error": text}, headers=http.headers) from refused
        except OutageError as outage:
            raise HTTPException(503, detail={"error": "the token budget cannot be checked"}) from outage
        if not bound:
            granted = self._granted(meter, prompt)
            if granted is not None:
                data["max_tokens"] = granted
        # Never an id of the caller: a repeated one would be a free call while its hold is open.
        key = secrets.token_urlsafe(16)
        while len(self._meters) >= _MOST:
            self._meters.pop(next(iter(self._meters)))
        self._meters[key] = meter
        if not isinstance(data.get("metadata"), dict):
            data["metadata"] = {}
        data["metadata"][_KEY] = key
        return data

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Settles what an answer has used, also that of a fallback."""
        meter = self._taken((kwargs.get("litellm_params") or {}).get("metadata"))
        if meter is not None:
            told = kwargs.get("standard_logging_object") or {}
            await meter.settle(**self._named(told.get("prompt_tokens") or 0, told.get("completion_tokens") or 0))

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """Gives back what a request holds that has failed as a whole, not an attempt that a fallback follows."""
        meter = self._taken(request_data.get("metadata"))
        if meter is not None:
            await meter.settle(**self._named(0, 0))

    def _estimate(self, prompt: int, bound: int | None) -> dict[str, int | Cost]:
        assumed = bound or self._assumed
        costs = self._named(prompt, assumed)
        if bound:
            return dict(costs)
        least = self._named(prompt, 1)
        # The prompt is known. Only the answer may be cut.
        return {name: cost if name == self._input else Cost(cost, least[name]) for name, cost in costs.items()}

    def _granted(self, meter: AsyncMeter, prompt: int) -> int | None:
        """Returns the tokens of the answer that all costs leave. None: nothing is held."""
        output = meter.granted(self._output) if self._output else None
        total = meter.granted(self._total) if self._total else None
        left = [units for units in (output, None if total is None else total - prompt) if units is not None]
        return min(left, default=None)

    def _named(self, prompt: int, answer: int) -> dict[str, int]:
        named = ((self._input, prompt), (self._output, answer), (self._total, prompt + answer))
        return {name: units for name, units in named if name is not None}

    def _taken(self, metadata: Any) -> AsyncMeter | None:
        key = metadata.get(_KEY) if isinstance(metadata, dict) else None
        return self._meters.pop(key, None) if isinstance(key, str) else None


def _prompt_tokens(data: dict[str, Any]) -> int:
    """Returns the tokens of a prompt, by the tokenizer of its model."""
    model, messages = data.get("model") or "", data.get("messages")
    if messages:
        return int(token_counter(model=model, messages=messages))
    text = data.get("prompt") or data.get("input") or ""
    return int(token_counter(model=model, text=text if isinstance(text, str) else str(text))) if text else 0
