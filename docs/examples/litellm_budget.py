"""Token budgets for LiteLLM's proxy, without a client library: `litellm_settings: { callbacks: litellm_budget.hook }`"""

import os
import secrets

import grpc
from fastapi import HTTPException
from litellm import token_counter
from litellm.integrations.custom_logger import CustomLogger
from weir.v1 import rate_limit_pb2 as pb
from weir.v1 import rate_limit_pb2_grpc

ASSUMED = 4096  # tokens of an answer without max_tokens


class Budget(CustomLogger):
    def __init__(self):
        super().__init__()
        self.stub, self.open = None, {}

    def weir(self):
        if self.stub is None:  # made on the loop of the proxy
            channel = grpc.aio.insecure_channel(os.environ.get("WEIR", "127.0.0.1:8081"))
            self.stub = rate_limit_pb2_grpc.RateLimitServiceStub(channel)
        return self.stub

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        prompt, bound = token_counter(model=data["model"], messages=data.get("messages") or []), data.get("max_tokens")
        # An id for each attempt. Never one of the caller: a repeated one would be a free call while its hold is open.
        ask = pb.ShouldAllowRequest(resource="llm", consumer=data.get("user") or "", id=secrets.token_urlsafe(16), headers=True)
        ask.costs["tokens"].cost = prompt + (bound or ASSUMED)
        if not bound:
            ask.costs["tokens"].at_least = prompt + 1
        ask.hold_for.FromSeconds(int(os.environ.get("HOLD_SECONDS", "600")))  # the longest answer
        answer = await self.weir().ShouldAllow(ask, timeout=1)
        if not answer.allowed:
            status = 403 if answer.reason in (pb.REASON_NEVER, pb.REASON_DENY_LIST) else 429
            raise HTTPException(status, detail={"error": answer.message}, headers=dict(answer.headers))
        granted = [limit.granted for limit in answer.limits if limit.granted and limit.cost == ask.costs["tokens"].cost]
        if granted and not bound:
            data["max_tokens"] = min(granted) - prompt
        if len(self.open) >= 10_000:  # of which neither success nor failure was told: what they hold comes back
            self.open.pop(next(iter(self.open)))
        self.open[ask.id] = ask
        data.setdefault("metadata", {})["weir_budget"] = ask.id
        return data

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        used = (kwargs.get("standard_logging_object") or {}).get("total_tokens") or 0
        await self.settle((kwargs.get("litellm_params") or {}).get("metadata"), used)

    # Not async_log_failure_event: that one also tells of an attempt that a fallback follows.
    async def async_post_call_failure_hook(self, request_data, original_exception, user_api_key_dict, traceback_str=None):
        await self.settle(request_data.get("metadata"), 0)

    async def settle(self, metadata, tokens):
        ask = self.open.pop((metadata or {}).get("weir_budget"), None)
        if ask is not None:
            settled = pb.SettleRequest(resource=ask.resource, consumer=ask.consumer, id=ask.id, costs={"tokens": tokens})
            await self.weir().Settle(settled, timeout=2)  # repeat it after UNAVAILABLE: it charges once


hook = Budget()
