#!/bin/sh
# Runs connectrpc's conformance suite, a Go module, against the layer of the HTTP listener. All cases must pass: there is no list
# of known failures. The suite is built into .cache/conformance once (3 minutes).
set -eu
cd "$(dirname "$0")/.."

version=v1.0.7
cache=$PWD/.cache/conformance
program=$cache/connectconformance-$version
folder=crates/http/examples/weir_conformance

say() { echo "test-conformance: $*" >&2; }

if [ ! -x "$program" ]; then
    command -v go >/dev/null || { say "the suite needs Go 1.26 (on Debian and Ubuntu: apt-get install golang-go)"; exit 1; }
    say "building the conformance suite $version (3 minutes)"
    GOENV=off GOBIN="$cache" GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 \
        nice -n 1 go install "connectrpc.com/conformance/cmd/connectconformance@$version" >&2
    mv "$cache/connectconformance" "$program"
fi
"${CARGO:-cargo}" build --quiet --profile tests --workspace --examples
"$program" --mode server --conf "$folder/conf.yaml" -- "${CARGO_TARGET_DIR:-target}/tests/examples/weir_conformance"
