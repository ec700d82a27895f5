#!/bin/sh
# Installs buf, which checks the protos, into .cache/buf: from npm, or from its Go module where npm cannot be reached. Prints
# nothing if it is there. SKIP_BUF=1 skips it; `make lint` then says that the protos are not checked.
set -eu
cd "$(dirname "$0")/.."

version=1.50.0
cache=$PWD/.cache/buf

say() { echo "install-buf: $*" >&2; }

if [ "${SKIP_BUF:-}" = 1 ]; then
    say "SKIP_BUF=1: the protos are NOT checked with buf"
    exit 0
fi
[ "$("$cache/buf" --version 2>/dev/null || true)" = "$version" ] && exit 0
say "installing buf $version"
rm -rf "$cache"
mkdir -p "$cache"
if command -v npm >/dev/null &&
    (cd "$cache" && npm install --silent --no-progress --ignore-scripts --no-save "@bufbuild/buf@$version") >&2; then
    platform=$(node -p 'process.platform + "-" + process.arch')
    mv "$cache/node_modules/@bufbuild/buf-$platform/bin/buf" "$cache/buf"
    rm -rf "$cache/node_modules"
elif command -v go >/dev/null &&
    GOBIN="$cache" GOPATH="$cache/go" GOFLAGS=-modcacherw nice -n 10 \
        go install "github.com/bufbuild/buf/cmd/buf@v$version" >&2; then
    rm -rf "$cache/go"
else
    say "buf $version could not be installed (it needs npm, or Go and its proxy of modules); SKIP_BUF=1 skips it"
    exit 1
fi
"$cache/buf" --version >/dev/null
