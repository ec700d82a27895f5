#!/usr/bin/env bash
# Runs `cargo test` with the given arguments and prints the slowest 20 tests.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TEST_TIMES=$(mktemp)
export TEST_TIMES
trap 'rm -f "$TEST_TIMES"' EXIT
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=$PWD/scripts/time-tests.sh"

"${CARGO:-cargo}" test "$@"
status=$?
echo "the slowest 20 tests:"
sed -n 's/^test \(.*\) \.\.\. .*<\([0-9.]*\)s>$/\2 s  \1/p' "$TEST_TIMES" | sort -rn | head -20
exit $status
