"""A site of Django for the tests."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from weir_ratelimit.drf import WeirThrottle
from weir_ratelimit.testing import FakeAsyncClient, FakeClient

weir = FakeClient()
async_weir = FakeAsyncClient()
reached: list[str] = []


def user_of(request: Any) -> str | None:
    user: str | None = request.META.get("HTTP_X_USER")
    return user


def index(request: Any) -> HttpResponse:
    reached.append(request.path)
    return HttpResponse("hello")


async def index_async(request: Any) -> HttpResponse:
    return index(request)


def stream(request: Any) -> StreamingHttpResponse:
    return StreamingHttpResponse(iter(["a", "b"]))


def broken(request: Any) -> HttpResponse:
    raise RuntimeError("broken")


class SearchThrottle(WeirThrottle):
    resource = "search"


class Search(APIView):
    throttle_classes = [SearchThrottle]
    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    def get(self, request: Any) -> Response:
        return Response("found")


urlpatterns = [
    path("", index),
    path("async", index_async),
    path("stream", stream),
    path("broken", broken),
    path("search", Search.as_view()),
]
