#!/bin/sh
# Checks the protos: buf's rules (STANDARD), and that nothing of proto/weir.binpb, the descriptor of what is promised, is
# broken. A change that breaks it on purpose replaces the descriptor in a commit of its own:
#
#   scripts/lint-protos.sh           check
#   scripts/lint-protos.sh promise   write proto/weir.binpb anew
set -eu
cd "$(dirname "$0")/.."

scripts/install-buf.sh
[ "${SKIP_BUF:-}" = 1 ] && exit 0
buf=$PWD/.cache/buf/buf

if [ "${1:-}" = promise ]; then
    exec "$buf" build proto --path proto/weir -o proto/weir.binpb
fi
"$buf" lint proto
if ! "$buf" breaking proto --against proto/weir.binpb; then
    echo "lint-protos: the protos break what proto/weir.binpb promises to clients. Add fields, methods and values instead;" >&2
    echo "lint-protos: where it must be, scripts/lint-protos.sh promise replaces the descriptor (docs/api.md)" >&2
    exit 1
fi
