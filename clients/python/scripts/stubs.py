"""Makes src/weir_ratelimit/_descriptors.binpb of the protocol again: stubs.py [FILE]. It needs grpcio-tools."""

import sys
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

PACKAGE = Path(__file__).resolve().parent.parent
PROTOCOL = PACKAGE.parent.parent / "proto"
FILES = ["weir/v1/rate_limit.proto", "details.proto"]


def make(target: Path) -> None:
    """Compiles the protocol, with what it imports, and without comments: each file with its length before it."""
    includes = [PROTOCOL, PACKAGE / "proto", Path(grpc_tools.__file__).parent / "_proto"]
    paths = [f"-I{path}" for path in includes]
    status = protoc.main(["protoc", *paths, "--include_imports", f"--descriptor_set_out={target}", *FILES])
    if status != 0:
        sys.exit(f"stubs.py: protoc failed with {status}")
    files = [file.SerializeToString() for file in FileDescriptorSet.FromString(target.read_bytes()).file]
    target.write_bytes(b"".join(len(file).to_bytes(4) + file for file in files))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE / "src/weir_ratelimit/_descriptors.binpb")
