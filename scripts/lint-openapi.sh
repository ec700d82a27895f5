#!/bin/sh
# Checks docs/openapi.json with the validator of tests/openapi/requirements.txt, which it installs into .cache/openapi.
# SKIP_OPENAPI=1 skips it, and says so.
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/openapi
wanted=tests/openapi/requirements.txt

say() { echo "lint-openapi: $*" >&2; }

if [ "${SKIP_OPENAPI:-}" = 1 ]; then
    say "SKIP_OPENAPI=1: docs/openapi.json is NOT validated"
    exit 0
fi
stamp=$(cksum <"$wanted")
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" != "$stamp" ]; then
    command -v python3 >/dev/null ||
        { say "the validator needs python3 (on Debian and Ubuntu: apt-get install python3 python3-venv); SKIP_OPENAPI=1 skips it"; exit 1; }
    say "installing the validator of OpenAPI"
    rm -rf "$cache"
    python3 -m venv "$cache" >&2
    "$cache/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2
    echo "$stamp" >"$cache/stamp"
fi
validate() { "$cache/bin/openapi-spec-validator" --schema 3.1 --validation-errors all "$1" 2>&1; }
found=$(validate docs/openapi.json) || { echo "$found" >&2; exit 1; }
# A validator that finds nothing in a broken page would prove nothing.
broken=$(mktemp)
trap 'rm -f "$broken"' EXIT
sed 's/"openapi": *"3\.1/"openapi":"9.1/; s/"responses"/"responsez"/' docs/openapi.json >"$broken"
if validate "$broken" >/dev/null; then
    say "the validator accepts a page that is broken"
    exit 1
fi
