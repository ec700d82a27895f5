#!/usr/bin/env bash
# Measures which part of an operation its rate-limit decision takes, with a Redis on this machine: how long a caller
# waits that asks one question at a time, for each kind of answer. Prints a table in Markdown, for operations of 1, 5
# and 20 ms.
#
#   scripts/decision-share.sh          measures target/dist/weir
set -euo pipefail
cd "$(dirname "$0")/.."
weir=${WEIR:-${CARGO_TARGET_DIR:-target}/dist/weir}
redis_port=6391 listen=127.0.0.1:18391 admin=127.0.0.1:18390

command -v redis-server >/dev/null || { echo "this script needs redis-server" >&2; exit 2; }
[ -x "$weir" ] || { echo "$weir does not exist: run make dist" >&2; exit 2; }
folder=$(mktemp -d)
started=()
end() { kill "${started[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"; }
trap end EXIT

cat >"$folder/weir.yaml" <<YAML
store: { redis: { nodes: ["redis://127.0.0.1:$redis_port"] } }
strategies:
  passes: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1000/s, burst: 1_000_000 } }] }
  denies: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/365d, burst: 1 } }] }
YAML
redis-server --port "$redis_port" --save '' --dir "$folder" >/dev/null &
started+=($!)

serve() {
    sed "s/\"\] }/\"], denials_max_age: $1 }/" "$folder/weir.yaml" >"$folder/now.yaml"
    "$weir" serve --config "$folder/now.yaml" --listen "$listen" --admin "$admin" --drain-delay 0s \
        >"$folder/serve.log" 2>&1 &
    served=$!
    started+=("$served")
    for _ in $(seq 100); do
        "$weir" allow "ready" "$1" --strategy passes --server "http://$listen" >/dev/null 2>&1 && return
        sleep 0.1
    done
    cat "$folder/serve.log" >&2
    exit 1
}

# $1: what is measured. $2: strategy. $3: keys.
measure() {
    "$weir" load --server "http://$listen" --connections 1 --in-flight 1 --duration 5s --warm-up 1s \
        --strategy "$2" --keys "$3" --quiet --output json >"$folder/report.json"
    awk -v what="$1" -F'[:,]' '
        /"p50"/ { p50 = $2 } /"p99"/ { p99 = $2 }
        END {
            printf "| %s | %.0f µs | %.0f µs |", what, p50, p99
            for (ms = 1; ms <= 20; ms *= ms == 1 ? 5 : 4) printf " %.1f %% |", p50 / ms / 10
            printf " %.1f ms |\n", p50 * 5 / 1000
        }' "$folder/report.json"
}

echo "| decision | p50 | p99 | of 1 ms | of 5 ms | of 20 ms | is 20 % of |"
echo "|---|---|---|---|---|---|---|"
serve 1s
measure "allowed" passes 100000
measure "denied, cached" denies 1
kill "$served" && wait "$served" 2>/dev/null || true
serve 0s
measure "denied, asked of Redis (\`denials_max_age: 0s\`)" denies 1
