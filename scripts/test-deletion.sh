#!/usr/bin/env bash
# Deletes each feature in a copy of the last commit, and tests what is left: test-deletion.sh [FEATURE]...
# `queues+leases` deletes both.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
copy=$target/deletion
export CARGO_TARGET_DIR=$target/deletion-target
failed=()

copied() {
    [ -e "$copy/.git" ] || git worktree add --quiet --force --detach "$copy" HEAD
    # Only files that differ are written, so that cargo compiles only what depends on them.
    git -C "$copy" checkout --quiet --force --detach "$(git rev-parse HEAD)"
    git -C "$copy" clean --quiet --force -d
    ln -sfn "$PWD/.cache" "$copy/.cache"
}

deleted() {
    local name
    for name in ${1//+/ }; do scripts/delete-feature.py "$name" "$copy" || return; done
}

# The trunk's own tests, and those of the program that cross features. Clients in other languages call methods of features.
tested() {
    cd "$copy" || return
    export SKIP_CLIENTS=1
    cargo build --quiet -p weir-proto --features generate &&
        cargo check --quiet --profile tests --workspace &&
        cargo test --quiet --profile tests --workspace --lib &&
        cargo test --quiet --profile tests --workspace --test semantics -- --skip long_ vectors:: properties:: &&
        cargo test --quiet --profile tests --workspace --test service -- --skip long_
}

[ $# -gt 0 ] || set -- $(sed -n '/^\[features\]/,/^\[d/s/^\([a-z]*\) = \["dep:weir-.*/\1/p' Cargo.toml)
for name; do
    started=$SECONDS
    echo "== without $name"
    if copied && deleted "$name" && (tested); then
        echo "== without $name: passed in $((SECONDS - started)) s"
    else
        failed+=("$name")
    fi
done
git worktree remove --force "$copy"
[ ${#failed[@]} -eq 0 ] || { echo "test-deletion.sh: FAILED without ${failed[*]}" >&2; exit 1; }
