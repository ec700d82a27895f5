"""The messages of the protocol, in a descriptor pool of their own.

A program may have its own stubs of `weir/v1`, of another version. In the default pool, the second of both would fail to
load with `TypeError: duplicate file name`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool, message_factory

_pool = descriptor_pool.DescriptorPool()


def load(name: str) -> None:
    """Loads a file of descriptors, each with its length before it.

    `descriptor_pb2` alone would take a third of the time of the import.
    """
    files = Path(__file__).with_name(name).read_bytes()
    while files:
        end = 4 + int.from_bytes(files[:4])
        _pool.AddSerializedFile(files[4:end])
        files = files[end:]


def message(name: str) -> Any:
    """Returns the class of a message."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(name))


load("_descriptors.binpb")
ShouldAllowRequest = message("weir.v1.ShouldAllowRequest")
ShouldAllowResponse = message("weir.v1.ShouldAllowResponse")
RichStatus = message("weir_ratelimit.RichStatus")
BadRequest = message("weir_ratelimit.BadRequest")

#: The reasons by their numbers, without the prefix and in lower case.
REASONS: dict[int, str] = {
    value.number: value.name.removeprefix("REASON_").lower()
    for value in _pool.FindEnumTypeByName("weir.v1.Reason").values
    if value.number != 0
}
