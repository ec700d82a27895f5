#!/usr/bin/env bash
# Runs the long tests within BUDGET seconds (420 by default), not counting the build. A part that stops because of the
# budget prints how far it came. If any part fails, the script fails. With BUDGET=1800 or more, as `make test-release` has it,
# each part has its full size, and those run that are slow and whose code changes seldom.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."

budget=${BUDGET:-420}
cargo=${CARGO:-cargo}
status=0
full=$((budget >= 1800))
shopt -s nullglob

# Those of features are found by folder.
binaries=(semantics service operations)
for main in crates/*/tests/main.rs; do binaries+=("$(basename "${main%/tests/main.rs}")"); done

# The simulator of nodes takes about a second of CPU time for each seed.
simulate() {
    WEIR_SIMULATION_SEEDS=$1 "$cargo" test --profile tests -q --workspace --test nodes -- --nocapture long_seeds::
}

# With --workspace: for a single package, cargo would build everything again with other features.
tests() { "$cargo" test --profile tests -q --workspace "${binaries[@]/#/--test=}" -- "$@"; }

part() {
    local name=$1 started=$SECONDS
    shift
    echo "== $name"
    "$@" || { status=1; echo "== $name: FAILED"; }
    echo "== $name: $((SECONDS - started)) s"
}

# A part of `make test-release`.
full_part() { [ $full -eq 0 ] || part "$@"; }

# Runs one module after the other, until the budget is used up; those that only the transport decides whatever it is.
suite_on_tonic() {
    local failed=0 run=0 own="service batch stream rls" modules module
    # The HTTP/2 tests are for the other transport. Soaks and rolling restarts are separate parts of this script.
    modules=$(tests --list 2>/dev/null | sed -n 's/^\([a-z0-9_]*\)::.*: test$/\1/p' | sort -u | grep -vx -e http2 -e long_soak)
    modules=$(printf '%s\n' $own $modules | awk '!seen[$0]++')
    for module in $modules; do
        if [[ " $own " != *" $module "* ]] && [ $((SECONDS - begun)) -ge "$budget" ]; then
            echo "the budget of $budget s is used up: $run of $(echo "$modules" | wc -l) modules ran; the next one is $module"
            break
        fi
        WEIR_TEST_TRANSPORT=tonic tests "$module::" --skip long_ || failed=1
        run=$((run + 1))
    done
    return $failed
}

echo "building"
"$cargo" test --profile tests --workspace --no-run --lib --bins --tests -q || exit 1
begun=$SECONDS
seeds=$((full ? 200 : 40))
[ $full -eq 1 ] || export LONG_TESTS=short
part "$seeds seeds of the simulator of nodes" simulate $seeds
part "rolling restarts behind a real Envoy" tests --nocapture long_restarts::
part "crowds of callers, live control that fails, Valkey and RedisTimeSeries" \
    tests long_concurrency:: long_control:: long_valkey:: long_timeseries::
full_part "Redis 6.2" tests long_redis_6::
full_part "a minute without an answer of Redis, in the place of ratelimit" tests --nocapture long_paused::
part "the same answers as envoyproxy/ratelimit" tests --nocapture long_reference::
full_part "10,000 traces of holds, Rust and Lua" tests --nocapture long_traces::
part "the worst cost of a decision in Redis" tests --nocapture long_worst_cost::
# One after the other: each takes both cores.
part "floods of batches" tests --nocapture --test-threads=1 long_floods::
part "a process that is stopped, and busy cores" tests --nocapture --test-threads=1 long_stalls::
part "probes beside silent and slow callers" tests --nocapture long_probes::
part "1,100 slow callers of the HTTP listener" tests --nocapture http_crowds::long_crowds::
full_part "clients after a restart" tests --nocapture --test-threads=1 long_reconnect::
full_part "client libraries, in real time" scripts/test-clients.sh long
# One after the other: each attacker takes a core.
part "attacks on TLS, and files that change under load" tests --nocapture --test-threads=1 long_attacks::
part "2,000 connections while a revocation list changes" tests --nocapture tls::long_crowds::
export WEIR_ROTATION_SECONDS=$((budget / 120))
part "all files replaced once a second, $WEIR_ROTATION_SECONDS s on each transport" tests --nocapture long_rotation::
export WEIR_RELOAD_SECONDS=${WEIR_RELOAD_SECONDS:-$((full ? 30 : 3))}
part "ten reloads a second beside load, $WEIR_RELOAD_SECONDS s on each store" tests --nocapture long_reload::
full_part "changes among 10,000 strategies and 10,000 entries" tests --nocapture --test-threads=1 long_swap::
part "the memory of open calls" tests --nocapture long_memory::
each=$((budget / (full ? 12 : 32)))
export WEIR_FUZZ_SECONDS=$each WEIR_SOAK_SECONDS=$((each / 3)) WEIR_KILL_SECONDS=$each WEIR_FAULT_SECONDS=$each
part "a queue, whatever is killed, and leases and ids, whatever fails, for $each s each" \
    tests --nocapture long_queue_kills:: long_faults::
part "fuzzing crates/grpc for $WEIR_FUZZ_SECONDS s" "$cargo" test --profile tests -q --workspace --test fuzz -- --nocapture
part "fuzzing crates/http for $WEIR_FUZZ_SECONDS s" \
    "$cargo" test --profile tests -q --workspace --test http -- --nocapture fuzz::
part "fuzzing certificates, x-forwarded-client-cert, JWKS and YAML" tests --nocapture --test-threads=1 long_hostile_files::
part "soaks of $WEIR_SOAK_SECONDS s each" tests long_soak::
unset WEIR_FUZZ_SECONDS WEIR_ROTATION_SECONDS WEIR_SOAK_SECONDS WEIR_KILL_SECONDS WEIR_FAULT_SECONDS
part "the suite on the transport tonic" suite_on_tonic

if [ $status -eq 0 ]; then echo "make test-long: all tests passed"; else echo "make test-long: FAILED, see above"; fi
exit $status
