#!/bin/sh
# Installs throttlecrab-server, which `make bench-http` compares with, into .cache/tools. Prints nothing if it is there. It needs
# protoc: the one on PATH, or that of the Python clients in .cache/clients.
set -eu
cd "$(dirname "$0")/.."

version=0.4.40
tools=$PWD/.cache/tools
clients=$PWD/.cache/clients/python/bin/python

say() { echo "install-throttlecrab: $*" >&2; }

[ -x "$tools/bin/throttlecrab-server" ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${PROTOC:-}" ] && ! command -v protoc >/dev/null; then
    [ -x "$clients" ] || { say "it needs protoc (on Debian and Ubuntu: apt-get install protobuf-compiler), or make clients"; exit 1; }
    printf '#!/bin/sh\nexec "%s" -m grpc_tools.protoc "$@"\n' "$clients" >"$work/protoc"
    chmod +x "$work/protoc"
    export PROTOC="$work/protoc"
fi
say "building throttlecrab-server $version (some minutes)"
CARGO_TARGET_DIR="$work/target" "${CARGO:-cargo}" install --quiet --locked --root "$tools" "throttlecrab-server@$version" >&2
