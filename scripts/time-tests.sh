#!/usr/bin/env bash
# Runs a test binary for cargo, with the time of each test, and keeps what it prints in $TEST_TIMES.
# The times are an option of nightly harnesses; the variable makes a stable one take it.
set -o pipefail
RUSTC_BOOTSTRAP=1 "$@" -Z unstable-options --report-time | tee -a "$TEST_TIMES"
