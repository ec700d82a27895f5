#!/usr/bin/env bash
# Compares what a decision costs in this tree and in another revision. Builds both in the profile `dist`, puts the same
# load on both by turns, and prints the medians and their ratio. The load comes from this tree's `weir load`.
#
#   scripts/bench-against.sh REF              a tag, a branch or a commit
#
# ROUNDS=5       rounds; each loads every revision once on each store
# SPAN=4s        the time that is measured in a round, after a second to warm up
# PROFILE=dist   the profile of this tree; `PROFILE=release scripts/bench-against.sh HEAD` compares two profiles
# STORES="memory redis"
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ref=${1:?"name a revision: make bench-against REF=v0.2.0"}
rounds=${ROUNDS:-5} span=${SPAN:-4s} profile=${PROFILE:-dist} stores=${STORES:-memory redis}
cargo=${CARGO:-cargo}
commit=$(git rev-parse --verify --short=12 "$ref^{commit}")
base=${CARGO_TARGET_DIR:-$PWD/target}
work=$base/bench-against
listen=127.0.0.1:18481 admin=127.0.0.1:18480 redis_port=18482

command -v redis-server >/dev/null || [[ " $stores " != *" redis "* ]] ||
    { echo "bench-against: redis-server is missing: run make redis, or set STORES=memory" >&2; exit 2; }

say() { echo "bench-against: $*" >&2; }

# The revision's files, without its history. They are unpacked once, because new times would build everything again.
tree=$work/$commit
if [ ! -e "$tree/.complete" ]; then
    rm -rf "$tree" && mkdir -p "$tree"
    git archive "$commit" | tar -x -C "$tree"
    touch "$tree/.complete"
fi

# Revisions before the profile `dist` get one that is alike.
dist=()
if ! grep -q '^\[profile\.dist\]' "$tree/Cargo.toml"; then
    dist=(--config 'profile.dist.inherits="release"' --config 'profile.dist.lto=false'
        --config 'profile.dist.codegen-units=4' --config 'profile.dist.package.weir.codegen-units=1')
fi
say "building $commit"
(cd "$tree" && CARGO_TARGET_DIR="$work/target" "$cargo" build --quiet --profile dist ${dist[@]+"${dist[@]}"} --bin weir)
cp "$work/target/dist/weir" "$work/weir-$commit"
say "building this tree"
"$cargo" build --quiet --profile "$profile" --bin weir
mine=$base/$profile/weir

folder=$(mktemp -d)
started=()
end() { kill ${started[@]+"${started[@]}"} 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"; }
trap end EXIT

cat >"$folder/weir.yaml" <<'YAML'
strategies:
  default: { limits: [{ name: each, per: [resource, consumer], token_bucket: { rate: 1000/s, burst: 1_000_000 } }] }
YAML
if [[ " $stores " == *" redis "* ]]; then
    redis-server --port "$redis_port" --save '' --dir "$folder" >/dev/null &
    started+=($!)
fi

# $1: who is measured. $2: its program. $3: memory or redis. Appends "STORE WHO CPU RSS" to the rounds.
measure() {
    local store=$3
    [ "$store" = memory ] || store=redis://127.0.0.1:$redis_port
    # A variable, because a revision that does not know it passes over it.
    WEIR_DRAIN_DELAY=0s "$2" serve --config "$folder/weir.yaml" --store "$store" --listen "$listen" --admin "$admin" \
        >"$folder/serve.log" 2>&1 &
    local served=$!
    started+=("$served")
    for _ in $(seq 100); do
        "$mine" allow any any --strategy default --server "$listen" >/dev/null 2>&1 && break
        kill -0 "$served" 2>/dev/null || { cat "$folder/serve.log" >&2; exit 1; }
        sleep 0.1
    done
    "$mine" load --server "$listen" --connections 8 --in-flight 128 --keys 100000 --strategy default --duration "$span" \
        --warm-up 1s --pid "$served" --quiet --output json >"$folder/report.json"
    awk -v who="$1" -v store="$3" -F'[:,]' '
        /"us_per_decision"/ { cpu = $2 } /"rss_bytes"/ { rss = $2 / 1e6 }
        END { printf "%s %s %.3f %.1f\n", store, who, cpu, rss }' "$folder/report.json" >>"$folder/rounds"
    kill "$served" && wait "$served" 2>/dev/null || true
}

for round in $(seq "$rounds"); do
    say "round $round of $rounds"
    for store in $stores; do
        measure "$commit" "$work/weir-$commit" "$store"
        measure "this-tree" "$mine" "$store"
    done
done

# $1: store. $2: who. $3: column. The median of its rounds.
median() {
    awk -v store="$1" -v who="$2" -v column="$3" '$1 == store && $2 == who { print $column }' "$folder/rounds" |
        sort -n | awk '{ all[NR] = $1 } END { print (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'
}

echo "unary, 100,000 keys, 8 connections, 128 in flight; medians of $rounds rounds of $span by turns; $(nproc) cores"
echo
echo "| store | revision | CPU µs per decision | ratio | resident MB | all rounds |"
echo "|---|---|---|---|---|---|"
for store in $stores; do
    before=$(median "$store" "$commit" 3)
    for who in "$commit" this-tree; do
        cpu=$(median "$store" "$who" 3)
        all=$(awk -v store="$store" -v who="$who" '$1 == store && $2 == who { printf "%s ", $3 }' "$folder/rounds")
        echo "| $store | $who | $cpu | $(awk "BEGIN { printf \"%.3f\", $cpu / $before }") | $(median "$store" "$who" 4) | ${all% } |"
    done
done
