#!/usr/bin/env bash
# Runs a test binary for cargo with the time of each test, and appends its output to $TEST_TIMES. The times are an option
# of nightly test harnesses; RUSTC_BOOTSTRAP=1 enables it in a stable one.
set -o pipefail
# Tests of these two mostly wait for processes and sockets.
case "$1" in */service-* | */operations-*) set -- "$@" --test-threads 6 ;; esac
RUSTC_BOOTSTRAP=1 "$@" -Z unstable-options --report-time | tee -a "$TEST_TIMES"
