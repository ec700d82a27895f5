#!/bin/sh
# Checks the libraries: their licences, sources and bans by deny.toml, THIRD-PARTY.md, and the advisories where their database
# can be had. SKIP_DENY=1 leaves out what needs cargo-deny, and says so.
set -eu
cd "$(dirname "$0")/.."

say() { echo "lint-licences: $*" >&2; }

scripts/third-party.sh --check
if [ "${SKIP_DENY:-}" = 1 ]; then
    say "SKIP_DENY=1: licences, sources and advisories are NOT checked with cargo-deny"
    exit 0
fi
deny=$(scripts/install-deny.sh)/cargo-deny
"$deny" --log-level error check licenses bans sources
if ! fetched=$(timeout 60 "$deny" fetch db 2>&1); then
    say "advisories are NOT checked: their database cannot be had ($(echo "$fetched" | tail -n 1))"
    exit 0
fi
"$deny" --log-level error check advisories
