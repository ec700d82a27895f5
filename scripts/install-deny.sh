#!/bin/sh
# Builds cargo-deny, which checks the licences and sources of libraries (about five minutes), and prints the folder of the
# program. It is kept outside of the clone, in ~/.cache/weir/deny, because it takes long to build.
set -eu

version=0.20.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir/deny

say() { echo "install-deny: $*" >&2; }

if [ "$("$cache/bin/cargo-deny" --version 2>/dev/null || true)" != "cargo-deny $version" ]; then
    say "building cargo-deny $version (5 minutes)"
    build=$(mktemp -d)
    trap 'rm -rf "$build"' EXIT
    if ! CARGO_TARGET_DIR="$build" nice -n 10 cargo install --quiet --locked --root "$cache" --version "$version" cargo-deny >&2; then
        say "cargo-deny $version could not be built (it needs crates.io and a C compiler); SKIP_DENY=1 skips it"
        exit 1
    fi
fi
echo "$cache/bin"
