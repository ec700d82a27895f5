#!/bin/sh
# Installs envoyproxy/ratelimit for a long test into .cache/reference, as a Go module. Prints nothing if it is installed.
# SKIP_REFERENCE=1 skips it: the test beside it then passes without running, and says so.
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/reference
version=v1.4.1-0.20260122083618-3fb702589d36

say() { echo "install-reference: $*" >&2; }

if [ "${SKIP_REFERENCE:-}" = 1 ]; then
    say "SKIP_REFERENCE=1: Weir is NOT compared with envoyproxy/ratelimit"
    exit 0
fi
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" != "$version" ]; then
    if ! command -v go >/dev/null; then
        say "it is built with Go (on Debian and Ubuntu: apt-get install golang); SKIP_REFERENCE=1 skips its test"
        exit 1
    fi
    say "building envoyproxy/ratelimit"
    rm -rf "$cache"
    mkdir -p "$cache"
    GOBIN=$cache go install "github.com/envoyproxy/ratelimit/src/service_cmd@$version" >&2
    echo "$version" >"$cache/stamp"
fi
