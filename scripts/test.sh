#!/usr/bin/env bash
# Runs the tests of `make test` in named steps, and prints the time of each: test.sh [features|build|unit|semantics|service|operations|clients]...
# A step that fails does not stop the others.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}
failed=()
times=()
shopt -s nullglob

# The test binaries of the crates, by folder. A feature has one, crates/F/tests/main.rs.
of_features=()
for main in crates/*/tests/main.rs; do of_features+=("$(basename "${main%/tests/main.rs}")"); done
binaries=()
for main in crates/*/tests/*/main.rs; do binaries+=("$(basename "${main%/main.rs}")"); done

# Always the whole workspace: for one package, cargo would build everything again with other features.
tests() { scripts/run-tests.sh --profile tests --workspace --no-fail-fast "$@" -- --skip long_; }

# The program without features, and with each feature alone.
features() {
    local status=0 name
    for name in "" $(sed -n '/^\[features\]/,/^\[d/s/^\([a-z]*\) = \["dep:weir-.*/\1/p' Cargo.toml); do
        echo "   ${name:-none}"
        "$cargo" check --quiet --profile tests -p weir --no-default-features --features "$name" || status=1
    done
    return $status
}

# All test binaries at once, so that both cores have work while one of them is compiled.
build() { "$cargo" test --quiet --profile tests --workspace --no-run --lib --bins --tests; }

# Examples in the documentation need a separate run: cargo does not combine them with other targets.
unit() {
    local status=0
    tests --lib --bins "${binaries[@]/#/--test=}" || status=1
    "$cargo" test --profile tests --workspace --no-fail-fast --doc || status=1
    return $status
}
semantics() { tests --test semantics "${of_features[@]/#/--test=}"; }
service() { tests --test service; }
operations() { tests --test operations; }
clients() { scripts/test-clients.sh; }

for main in tests/*/main.rs; do
    name=$(basename "${main%/main.rs}")
    case $name in
        semantics | service | operations) ;;
        *) echo "test.sh: no step runs the test binary $name" >&2 && exit 2 ;;
    esac
done
[ $# -gt 0 ] || set -- features build unit semantics service operations clients
for step in "$@"; do
    case $step in
        features | build | unit | semantics | service | operations | clients) ;;
        *) echo "test.sh: there is no step \`$step\`" >&2 && exit 2 ;;
    esac
    started=$SECONDS
    echo "== $step"
    "$step" || failed+=("$step")
    times+=("$step: $((SECONDS - started)) s")
done
rm -rf "$target"/tmp/weir-it-*
printf '== %s\n' "${times[@]}"
if [ ${#failed[@]} -gt 0 ]; then
    echo "make test: FAILED in ${failed[*]}, see above"
    exit 1
fi
echo "make test: all tests passed"
