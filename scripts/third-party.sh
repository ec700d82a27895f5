#!/bin/sh
# Lists the libraries that the program contains, with their licences, in THIRD-PARTY.md.
#
#   third-party.sh           write the file
#   third-party.sh --check   fail if the file is out of date
set -eu
cd "$(dirname "$0")/.."

written=$(mktemp)
trap 'rm -f "$written"' EXIT
{
    echo "# Libraries in the program"
    echo
    echo "What \`weir\` for Linux is built from, besides its own crates. scripts/third-party.sh writes this file, and"
    echo "\`make lint\` checks it, and the licences against deny.toml. The text of each licence is in the sources of the library."
    echo
    echo "| library | version | licence | sources |"
    echo "|---|---|---|---|"
    "${CARGO:-cargo}" tree --locked --package weir --edges normal --prefix none --target x86_64-unknown-linux-gnu \
        --format '{p}|{l}|{r}' | sed 's/ (\*)$//; s/ (proc-macro)//' | grep -v '^weir' | LC_ALL=C sort -u |
        sed 's/^\([^ ]*\) v\([^|]*\)|\([^|]*\)|\(.*\)$/| \1 | \2 | \3 | \4 |/'
} >"$written"
if [ "${1:-}" != --check ]; then
    cp "$written" THIRD-PARTY.md
elif ! cmp -s "$written" THIRD-PARTY.md; then
    echo "third-party: THIRD-PARTY.md is out of date; run scripts/third-party.sh:" >&2
    diff THIRD-PARTY.md "$written" | head -20 >&2 || true
    exit 1
fi
