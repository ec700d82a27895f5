"""A dependency for FastAPI: a limit for one route."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Unpack

from starlette.exceptions import HTTPException
from starlette.requests import Request

from ._middleware import Consumer, More, Options, Resource, check_client
from .asgi import keep

__all__ = ["limit"]


def limit(
    client: Any, resource: Resource, *, consumer: Consumer, **options: Unpack[More]
) -> Callable[[Request], Awaitable[None]]:
    """Returns a dependency that asks about each request: `Depends(limit(weir, "search", consumer=user_of))`.

    A denial is an HTTPException with its headers. An allowed answer has them if `weir_ratelimit.asgi.WeirMiddleware` is
    part of the application.
    """
    check_client(client, asynchronous=True)
    checked = Options(resource, consumer, **options)

    async def ask(request: Request) -> None:
        verdict = await checked.judge_async(client, request)
        if verdict.decision is not None:
            keep(request.scope, verdict.decision, checked.headers)
        if verdict.status is not None:
            raise HTTPException(verdict.status, verdict.text, verdict.headers)
        if checked.hold and verdict.hold > 0:
            await asyncio.sleep(verdict.hold)
            if await request.is_disconnected():
                raise HTTPException(499, "The caller has left")

    return ask
