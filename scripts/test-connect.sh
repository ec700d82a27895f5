#!/bin/sh
# Calls the real server with the clients of Connect in Go, TypeScript and Python, by JSON and by Protobuf. Installs them into
# .cache/connect, in the versions of tests/clients/connect, if they are not there.
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/connect
wanted=$PWD/tests/clients/connect
protos=$(cd proto && find weir -name '*.proto' | sort)

say() { echo "test-connect: $*" >&2; }

need() {
    command -v "$1" >/dev/null || { say "the tests need $1 (on Debian and Ubuntu: apt-get install $2)"; exit 1; }
}

# protoc, with the plugins of both languages.
stubs() { "$cache/python/bin/python" -m grpc_tools.protoc -Iproto "$@"; }

python_client() {
    need python3 "python3 python3-venv"
    python3 -m venv "$cache/python" >&2
    "$cache/python/bin/pip" install --quiet --disable-pip-version-check -r "$wanted/requirements.txt" >&2
    mkdir -p "$cache/stubs"
    # shellcheck disable=SC2086 # the names of our own files have no spaces
    stubs --plugin="$cache/python/bin/protoc-gen-connectrpc" --connectrpc_opt=protobuf=google \
        --connectrpc_out="$cache/stubs" --python_out="$cache/stubs" $protos
}

node_client() {
    need npm "nodejs npm"
    mkdir -p "$cache/node"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$wanted/client.mjs" "$cache/node/"
    (cd "$cache/node" && npm ci --silent --no-progress --ignore-scripts) >&2
}

go_build() {
    (cd "$cache/go" && GOENV=off GO111MODULE=on GOFLAGS='-mod=readonly -modcacherw' GOTOOLCHAIN=local CGO_ENABLED=0 \
        nice -n 1 go build -o "$cache/go/" "$@") >&2
}

go_client() {
    need go golang-go
    mkdir -p "$cache/go/client"
    cp "$wanted/go/go.mod" "$wanted/go/go.sum" "$cache/go/"
    cp "$wanted/go/main.go" "$cache/go/client/"
    go_build google.golang.org/protobuf/cmd/protoc-gen-go connectrpc.com/connect/cmd/protoc-gen-connect-go
    options=module=example.com/you
    for proto in $protos; do options=$options,M$proto=example.com/you/weirv1; done
    # shellcheck disable=SC2086
    stubs --plugin="$cache/go/protoc-gen-go" --go_out="$cache/go" --go_opt="$options" \
        --plugin="$cache/go/protoc-gen-connect-go" --connect-go_out="$cache/go" --connect-go_opt="$options" $protos
    mkdir -p "$cache/bin"
    (cd "$cache/go" && GOENV=off GO111MODULE=on GOFLAGS='-mod=readonly -modcacherw' GOTOOLCHAIN=local CGO_ENABLED=0 \
        go build -o "$cache/bin/client" ./client) >&2
}

# shellcheck disable=SC2086
stamp=$(cat "$0" "$wanted"/*.* "$wanted"/go/* $(printf 'proto/%s ' $protos) | cksum)
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" != "$stamp" ]; then
    say "installing the clients of Connect (a minute)"
    rm -rf "$cache"
    mkdir -p "$cache"
    python_client
    node_client
    go_client
    echo "$stamp" >"$cache/stamp"
fi
"${CARGO:-cargo}" build --quiet --profile tests --workspace --bin weir --examples

work=$(mktemp -d)
trap 'kill "$served" 2>/dev/null || true; rm -rf "$work"' EXIT
served=
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
http=127.0.0.1:$(free_port) grpc=127.0.0.1:$(free_port)
WEIR_DRAIN_DELAY=0s "${WEIR_BIN:-${CARGO_TARGET_DIR:-target}/tests/weir}" serve --config "$wanted/weir.yaml" --http "$http" \
    --listen "$grpc" --admin "127.0.0.1:$(free_port)" >"$work/log" 2>&1 &
served=$!
for _ in $(seq 100); do
    curl --silent --noproxy '*' --output /dev/null "http://$http/openapi.json" && break
    kill -0 "$served" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
    sleep 0.1
done
export no_proxy=127.0.0.1 NO_PROXY=127.0.0.1 PYTHONDONTWRITEBYTECODE=1
status=0
client() {
    name=$1
    shift
    if [ "$("$@" | tail -1)" = "all ok" ]; then echo "Connect from $name: all ok"; else status=1; echo "Connect from $name: FAILED"; fi
}
client Go "$cache/bin/client" "http://$http"
client TypeScript node "$cache/node/client.mjs" "http://$http" proto/weir.binpb
PYTHONPATH=$cache/stubs client Python "$cache/python/bin/python" "$wanted/client.py" "http://$http"
exit $status
