#!/usr/bin/env bash
# Draws the pictures of docs/algorithms.md with `weir simulate`: pictures.sh WEIR FOLDER
# A test compares them with docs/pictures. The calls are from files, so there is no seed.
set -euo pipefail
weir=$(realpath "$1")
folder=$(realpath "$2")
cd "$(dirname "$0")/.."

# A picture, its calls, the window of "at most", and its strategies.
draw() {
  local name=$1 calls=$2 window=$3
  shift 3
  "$weir" simulate --config docs/pictures/algorithms.yaml --pattern "docs/pictures/$calls.csv" --window "$window" \
    --svg "$folder/$name.svg" "${@/#/--strategy=}" >/dev/null
}

draw uniform calls 6s uniform
draw token_bucket calls 6s token_bucket gcra leaky_bucket
draw charge_after calls 6s charge_after
draw leaky_queue calls 6s leaky_queue
draw warm_up calls 6s warm_up
draw fixed_window calls 6s fixed_window
draw anchored calls 6s anchored
draw spread calls 6s spread spread-too
draw calendar days 1d calendar
draw interval_refill calls 6s interval_refill aligned
draw sliding_window calls 6s sliding_window
draw bucketed_window calls 6s bucketed_window
draw not-strict calls 6s not-strict
draw sliding_log calls 6s sliding_log
draw count_denied calls 6s count_denied
draw min_gap calls 6s min_gap
