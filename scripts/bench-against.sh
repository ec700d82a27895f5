#!/usr/bin/env bash
# Compares what a decision costs in this tree and in another revision. Builds both in the profile `dist`, puts the same
# load on both by turns, and prints the medians and their ratio. The load comes from this tree's `weir load`.
#
#   scripts/bench-against.sh REF              a tag, a branch or a commit
#
# WORK=unary     unary, batch, envoy, hot or limits4, or several: WORK="unary hot"
# ROUNDS=5       rounds; each loads every revision once on each store
# SPAN=4s        the time that is measured in a round, after a second to warm up
# PROFILE=dist   the profile of this tree; `PROFILE=release scripts/bench-against.sh HEAD` compares two profiles
# STORES="memory redis"
# COUNT=20000    decisions whose instructions callgrind counts, once for each revision, store and work; 0 counts none
#
# Instructions are those that the server takes in user mode. `perf stat` counts them in every round; where the processor
# has no counter for it, as on most virtual machines, the server runs under callgrind once more. Its threads then run one
# after the other, which makes calls that arrive together larger: compare such counts only with one another.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ref=${1:?"name a revision: make bench-against REF=v0.2.0"}
rounds=${ROUNDS:-5} span=${SPAN:-4s} profile=${PROFILE:-dist} stores=${STORES:-memory redis} works=${WORK:-unary}
count=${COUNT:-20000}
cargo=${CARGO:-cargo}
commit=$(git rev-parse --verify --short=12 "$ref^{commit}")
base=${CARGO_TARGET_DIR:-$PWD/target}
bench=$base/bench-against
listen=127.0.0.1:18481 admin=127.0.0.1:18480 redis_port=18482

say() { echo "bench-against: $*" >&2; }

for work in $works; do
    [[ " unary batch envoy hot limits4 " == *" $work "* ]] ||
        { say "WORK=$work: it must be unary, batch, envoy, hot or limits4"; exit 2; }
done
command -v redis-server >/dev/null || [[ " $stores " != *" redis "* ]] ||
    { say "redis-server is missing: run make redis, or set STORES=memory"; exit 2; }

# What counts instructions: perf, callgrind or nothing.
counter=none
if perf stat -x, -e instructions:u true 2>&1 | grep -q '^[0-9]\+,'; then
    counter=perf
elif [ "$count" -gt 0 ] && command -v valgrind >/dev/null; then
    counter=callgrind
elif [ "$count" -gt 0 ]; then
    say "neither perf with a counter of instructions nor valgrind is here: instructions are NOT counted"
fi

# The revision's files, without its history. They are unpacked once, because new times would build everything again.
tree=$bench/$commit
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
if [ ! -x "$bench/weir-$commit" ]; then
    say "building $commit"
    # Cargo compares times of files, so it would take crates of a newer revision for those of this one. Only libraries stay built.
    rm -rf "$bench"/target/dist/.fingerprint/weir*
    (cd "$tree" && CARGO_TARGET_DIR="$bench/target" "$cargo" build --quiet --profile dist ${dist[@]+"${dist[@]}"} --bin weir)
    cp "$bench/target/dist/weir" "$bench/weir-$commit"
fi
say "building this tree"
"$cargo" build --quiet --profile "$profile" --bin weir
mine=$base/$profile/weir

folder=$(mktemp -d)
started=()
end() { kill ${started[@]+"${started[@]}"} 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"; }
trap end EXIT

window() { echo "{ name: w$1, per: [resource, consumer], fixed_window: { limit: 1_000_000_000, window: $2 } }"; }
bucket='per: [resource, consumer], token_bucket: { rate: 1000/s, burst: 1_000_000 }'
cat >"$folder/weir.yaml" <<YAML
strategies:
  default: { limits: [{ name: each, $bucket }] }
  limits4: { limits: [$(window 1 1s), $(window 2 1m), $(window 3 1h), { name: each, $bucket }] }
YAML
mkdir "$folder/envoy"
cat >"$folder/envoy/bench.yaml" <<'YAML'
domain: bench
descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 4294967295 } }]
YAML
if [[ " $stores " == *" redis "* ]]; then
    redis-server --port "$redis_port" --save '' --dir "$folder" >/dev/null &
    redis=$!
    started+=("$redis")
fi

# $1: a work. Sets the options of its load.
choose() {
    options=(--connections 8 --in-flight 128 --keys 100000 --strategy default)
    case $1 in
    batch) options=(--connections 8 --in-flight 16 --keys 100000 --strategy default --mode batch --batch 100) ;;
    envoy) options=(--connections 8 --in-flight 128 --keys 100000 --mode envoy --domain bench) ;;
    hot) options=(--connections 8 --in-flight 128 --keys 1 --strategy default) ;;
    limits4) options=(--connections 8 --in-flight 128 --keys 100000 --strategy limits4) ;;
    esac
}

# $1: a program. $2: memory or redis. The rest runs it. Leaves its process in `served`. `deadline` is that of Redis.
serve() {
    local program=$1 store=$2
    shift 2
    # Variables, because a revision that does not know them passes over them.
    local variables=(WEIR_DRAIN_DELAY=0s)
    if [ "$store" = redis ]; then
        store=redis://127.0.0.1:$redis_port
        variables+=(WEIR_DEADLINE="${deadline:-1s}" WEIR_CONNECT_TIMEOUT="${deadline:-1s}")
    fi
    env "${variables[@]}" "$@" "$program" serve \
        --config "$folder/weir.yaml" --envoy-config "$folder/envoy" --store "$store" --listen "$listen" --admin "$admin" \
        >"$folder/serve.log" 2>&1 &
    served=$!
    started+=("$served")
    for _ in $(seq 300); do
        "$mine" allow any any --strategy default --server "$listen" >/dev/null 2>&1 && return
        kill -0 "$served" 2>/dev/null || break
        sleep 0.1
    done
    cat "$folder/serve.log" >&2
    exit 1
}

stop() { kill "$served" && wait "$served" 2>/dev/null || true; }

load() { "$mine" load --server "$listen" --quiet --output json "${options[@]}" "$@" >"$folder/report.json"; }

# $1: a name of the report, such as warm_up_calls. $2: 2 for Redis, beside the server.
figure() { awk -F'[:,]' -v name="\"$1\"" -v at="${2:-1}" '$1 ~ name && ++met == at { print $2 + 0 }' "$folder/report.json"; }

# $1: who is measured. $2: its program. $3: store. $4: work. Appends "STORE WORK WHO CPU RSS INSTRUCTIONS REDIS" to the rounds.
measure() {
    choose "$4"
    serve "$2" "$3"
    local counting='' counted=-
    if [ "$counter" = perf ]; then
        perf stat -x, -e instructions:u -o "$folder/perf" -p "$served" &
        counting=$!
    fi
    local pids=(--pid "$served") redis_cpu=-
    [ "$3" = memory ] || pids+=(--pid "$redis")
    load --duration "$span" --warm-up 1s "${pids[@]}"
    if [ -n "$counting" ]; then
        kill -INT "$counting" && wait "$counting" 2>/dev/null || true
        local all
        all=$(awk -F, '/instructions/ { print $1; exit }' "$folder/perf")
        counted=$(awk "BEGIN { printf \"%.0f\", $all / ($(figure asked) + $(figure warm_up_calls) * $(figure batch)) }")
    fi
    [ "$3" = memory ] || redis_cpu=$(figure us_per_decision 2)
    echo "$3 $4 $1 $(figure us_per_decision) $(awk "BEGIN { print $(figure rss_bytes) / 1e6 }") $counted $redis_cpu" >>"$folder/rounds"
    stop
}

# The same, by callgrind: the instructions of about $count decisions.
count_instructions() {
    choose "$4"
    local each=1
    [ "$4" != batch ] || each=100
    deadline=30s serve "$2" "$3" valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$folder/callgrind.%p"
    load --requests "$((count / each / 2 + 1))" --warm-up 0s
    callgrind_control -i on "$served" >/dev/null 2>&1
    load --requests "$((count / each + 1))" --warm-up 0s
    callgrind_control -i off "$served" >/dev/null 2>&1
    stop
    local all
    all=$(awk '/^(totals|summary):/ && $2 > most { most = $2 } END { print most + 0 }' "$folder"/callgrind.*)
    rm -f "$folder"/callgrind.*
    echo "$3 $4 $1 - - $(awk "BEGIN { printf \"%.0f\", $all / $(figure asked) }") -" >>"$folder/rounds"
}

for round in $(seq "$rounds"); do
    say "round $round of $rounds"
    for work in $works; do
        for store in $stores; do
            measure "$commit" "$bench/weir-$commit" "$store" "$work"
            measure this-tree "$mine" "$store" "$work"
        done
    done
done
if [ "$counter" = callgrind ]; then
    say "counting instructions"
    for work in $works; do
        for store in $stores; do
            count_instructions "$commit" "$bench/weir-$commit" "$store" "$work"
            count_instructions this-tree "$mine" "$store" "$work"
        done
    done
fi

# $1: store. $2: work. $3: who. $4: column. The figures of its rounds, and their median; - if there are none.
all() { awk -v of="$1 $2 $3" -v column="$4" '$1 " " $2 " " $3 == of && $column != "-" { print $column }' "$folder/rounds"; }
median() { all "$@" | sort -n | awk '{ all[NR] = $1 } END { print NR ? (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 : "-" }'; }
# The ratio of $2 to $1.
ratio() { awk -v before="$1" -v after="$2" 'BEGIN { if (before + 0 > 0 && after != "-") printf "%.3f", after / before; else printf "-" }'; }

echo "8 connections, 128 calls in flight (16 of batch), 100,000 keys (one of hot); medians of $rounds rounds of $span by turns; $(nproc) cores"
echo "instructions of the server in user mode: $counter"
echo
echo "| store | work | revision | CPU µs per decision | ratio | instructions | ratio | Redis, µs | ratio | resident MB | all rounds, µs |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
for work in $works; do
    for store in $stores; do
        before=$(median "$store" "$work" "$commit" 4) instructions=$(median "$store" "$work" "$commit" 6)
        in_redis=$(median "$store" "$work" "$commit" 7)
        for who in "$commit" this-tree; do
            cpu=$(median "$store" "$work" "$who" 4) counted=$(median "$store" "$work" "$who" 6)
            redis_cpu=$(median "$store" "$work" "$who" 7)
            echo "| $store | $work | $who | $cpu | $(ratio "$before" "$cpu") | $counted | $(ratio "$instructions" "$counted")" \
                "| $redis_cpu | $(ratio "$in_redis" "$redis_cpu") | $(median "$store" "$work" "$who" 5) | $(all "$store" "$work" "$who" 4 | tr '\n' ' ')|"
        done
    done
done
