#!/bin/sh
# Builds cargo-deny, which checks the licences and sources of libraries, into .cache/deny (about five minutes). Prints nothing
# if it is there. SKIP_DENY=1 skips it; `make lint` then says that the licences are not checked.
set -eu
cd "$(dirname "$0")/.."

version=0.20.2
cache=$PWD/.cache/deny

say() { echo "install-deny: $*" >&2; }

[ "$("$cache/bin/cargo-deny" --version 2>/dev/null || true)" = "cargo-deny $version" ] && exit 0
say "building cargo-deny $version (5 minutes)"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
if ! CARGO_TARGET_DIR="$build" nice -n 10 cargo install --quiet --locked --root "$cache" --version "$version" cargo-deny >&2; then
    say "cargo-deny $version could not be built (it needs crates.io and a C compiler); SKIP_DENY=1 skips it"
    exit 1
fi
