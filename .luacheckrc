-- How `make lint` checks the scripts that it writes to .cache/lua. Redis has these globals, and no others.
std = "lua51"
read_globals = { "redis", "struct", "KEYS", "ARGV" }
max_line_length = false
-- A call may return more than is needed.
unused_secondaries = false
ignore = {
  -- An engine's functions take `now` as a parameter, as their Rust twins do. The script has a variable of that name.
  "431",
  -- Lines of the short path are made from parts, and end where a part ends.
  "612",
  -- `not (a >= b)` is also true where one of them, from a broken state, is no number.
  "581",
  -- The short path alone uses the number of keys.
  "311/key_count",
}
-- A script without an engine has no functions of that engine, and does not use all that some engine needs.
files["**/short-*.lua"] = {
  ignore = {
    "431", "612", "581", "311/key_count",
    "113/[a-z]+_[a-z]+", "113/SPREAD",
    -- Of operations under an id, of logs that hold reservations, and of counts.
    "113/held_start_of", "113/held_full_for", "113/RECORD_LASTS", "113/DEBIT_LASTS", "113/OTHER_COST", "211/log_forget", "211/log_push_all", "113/ring_make_list",
    "211/mul_div", "211/whole", "211/now_text", "211/raw_[0-9]", "231/[a-zA-Z_]+[0-9]*", "311/gathers", "311/written",
  },
}
-- The same with the driver of limits with costs of their own. Where no limit is a log, nothing asks whether costs vary.
files["**/costs-*.lua"] = {
  ignore = {
    "431", "612", "581", "311/key_count",
    "113/[a-z]+_[a-z]+", "113/SPREAD", "113/MONTH", "113/ALIGNED",
    "113/held_start_of", "113/held_full_for", "113/RECORD_LASTS", "113/DEBIT_LASTS", "113/OTHER_COST",
    "211/log_forget", "211/log_push_all", "113/ring_make_list",
    "211/mul_div", "211/whole", "211/now_text", "211/raw_[0-9]", "231/[a-zA-Z_]+[0-9]*", "311/gathers", "311/written",
    "211/varied", "221/varied", "211/OF_ONCE", "211/[a-z]+_newest",
  },
}
-- Nothing is remembered for a limit that does not adapt.
files["**/leases-fixed.lua"] = {
  ignore = { "431", "612", "581", "311/key_count", "211/m[1-3]", "221" },
}
-- Of limits with costs of their own: what other drivers alone use.
files["**/budget.lua"] = {
  ignore = {
    "431", "612", "581", "311/key_count",
    "211/short", "211/admitted", "211/skip", "211/OF_ONCE", "211/OTHER_COST", "211/sparse_newest",
    "211/held_full_for", "211/held_release", "211/record_cancel", "211/record_wait", "211/record_cancelled",
  },
}
