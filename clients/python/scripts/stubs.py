"""Makes the descriptors in src/weir_ratelimit of the protocol again: stubs.py [FOLDER]. It needs grpcio-tools."""

import sys
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

PACKAGE = Path(__file__).resolve().parent.parent
PROTOCOL = PACKAGE.parent.parent / "proto"
#: Leases are loaded when they are used first, so they have a file of their own.
SETS = {
    "_descriptors.binpb": ["--include_imports", "weir/v1/rate_limit.proto", "details.proto"],
    "_lease_descriptors.binpb": ["weir/v1/leases.proto"],
}


def make(folder: Path) -> None:
    """Compiles the protocol, without comments: each file with its length before it."""
    includes = [PROTOCOL, PACKAGE / "proto", Path(grpc_tools.__file__).parent / "_proto"]
    paths = [f"-I{path}" for path in includes]
    for name, files in SETS.items():
        target = folder / name
        status = protoc.main(["protoc", *paths, f"--descriptor_set_out={target}", *files])
        if status != 0:
            sys.exit(f"stubs.py: protoc failed with {status}")
        found = [file.SerializeToString() for file in FileDescriptorSet.FromString(target.read_bytes()).file]
        target.write_bytes(b"".join(len(file).to_bytes(4) + file for file in found))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE / "src/weir_ratelimit")
