#!/bin/sh
# Puts the schema of Compose files, as the Go module of the Compose specification has it, into .cache/compose. Prints nothing if it
# is there. SKIP_HELM=1 skips it, as it skips all that comes from Go modules of deployment tools.
#
#   install-compose.sh            install what is missing or out of date
#   install-compose.sh --check    install nothing; fail if it is missing or out of date
set -eu
cd "$(dirname "$0")/.."

module=github.com/compose-spec/compose-go/v2
version=v2.9.1
cache=$PWD/.cache/compose

say() { echo "install-compose: $*" >&2; }

if [ "${SKIP_HELM:-}" = 1 ]; then
    say "SKIP_HELM=1: deploy/compose is NOT compared with the schema of Compose"
    exit 0
fi
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" = "$version" ]; then
    exit 0
fi
if [ "${1:-}" = --check ]; then
    say ".cache/compose is missing or out of date: run scripts/install-compose.sh (make test does this), or SKIP_HELM=1"
    exit 1
fi
if ! command -v go >/dev/null; then
    say "the schema of Compose is in a Go module, which needs Go (on Debian and Ubuntu: apt-get install golang-go)"
    exit 1
fi
rm -rf "$cache"
mkdir -p "$cache"
(cd "$cache" && GOENV=off GO111MODULE=on GOFLAGS=-modcacherw GOTOOLCHAIN=local GOPATH="$cache/modules" \
    go mod download "$module@$version") >&2
cp "$cache/modules/pkg/mod/$module@$version/schema/compose-spec.json" "$cache/compose-spec.json"
rm -rf "$cache/modules"
echo "$version" >"$cache/stamp"
