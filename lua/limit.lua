-- What the drivers ask of a limit, whatever its engine. Twins: the methods of the same names in
-- crates/core/src/algorithm.rs and crates/core/src/algorithm/judge.rs.

local REFUND, RESET, FORCE, AT_MOST, RESERVE, REFUND_ONCE = 3, 4, 5, 6, 7, 8
local QUEUE, CHARGE_AFTER = 1, 2 -- what a bucket is besides a meter
local NEVER = -1
local FITS, COUNT, MIN_GAP, ABOVE = 0, 1, 2, 3 -- why a limit denies

-- Operations under an id, and what they do the first time.
local CHARGE_ONCE, FORCE_ONCE, AT_MOST_ONCE, RESERVE_ONCE, CANCEL, COUNT_PARTS = 9, 10, 11, 12, 13, 14
local OF_ONCE = {
  [CHARGE_ONCE] = CHARGE, [FORCE_ONCE] = FORCE, [AT_MOST_ONCE] = AT_MOST, [RESERVE_ONCE] = RESERVE, [CANCEL] = CANCEL,
}

-- How long the id of a refund is remembered. Twin: REFUND_ID_LASTS in crates/store/src/part.rs.
local REFUND_ID_PX = 86400000

local function read(limit, key, now)
  local engine = limit.engine
  if engine == BUCKET then return bucket_read(key, now, limit.weight, limit.p1) end
  if engine == WINDOW then return window_read(key, now, limit.p1, limit.p2, limit.p3) end
  if engine == INTERVAL then return interval_read(key, now, limit.ceiling, limit.p1, limit.p2, limit.p3) end
  if engine == SLIDING then return sliding_read(key, now, limit.p1) end
  if engine == SLOTS then return slots_read(key, now, limit.p1, limit.p2) end
  if engine == WARM_UP then return warm_read(key, now, limit.p1, limit.p2, limit.p3) end
  if engine == SPARSE then return sparse_read(key, now, limit.p1, limit.p2) end
  return log_read(key, now, limit.p1)
end

local function wait(limit, key, one, excess)
  local engine = limit.engine
  if engine == BUCKET then return ceil_div(excess, limit.p1) end
  if engine == WINDOW then return one.origin + one.extra - one.at end
  if engine == INTERVAL then return interval_wait(one.at, one.origin, excess, limit.p1, limit.p2) end
  if engine == SLIDING then return sliding_wait(one, excess, limit.p1) end
  if engine == SLOTS then return slots_wait(one, excess) end
  if engine == WARM_UP then return excess end
  if engine == SPARSE then return sparse_wait(key, one, limit.p1, limit.p2, excess) end
  return log_wait(key, one, excess, limit.p1)
end

local function reset_after(limit, key, one)
  if limit.hold then return held_reset(limit, one) end
  if one.level == 0 then return 0 end
  return wait(limit, key, one, one.level)
end

local function remaining(limit, one)
  if limit.hold and one.ahead then return 0 end
  if limit.engine == WARM_UP then return floor(one.extra) end
  local room = limit.capacity - one.level
  if room <= 0 then return 0 end
  return floor_div(room, limit.weight)
end

-- What a log that counts denied attempts records of one, admitted or not; 0 for any other limit.
local function attempt(limit, cost)
  if limit.engine ~= LOG or limit.count_denied == 0 then return 0 end
  return min(cost, limit.limit + 1)
end

-- What remains after the decision. In a log that counts denied attempts, a peek counts as an attempt.
local function remaining_after(limit, one, op, cost)
  local left = remaining(limit, one)
  if op == PEEK then left = max(left - attempt(limit, cost), 0) end
  return left
end

-- What is left of the shortest time since the newest charge.
local function gap(limit, one)
  if limit.engine ~= LOG or one.level == 0 then return 0 end
  return max(limit.p2 - (one.at - one.origin), 0)
end

-- Makes the stored level `level`. The key goes once the state is as good as absent, rounded up, by the
-- state's own time, which is ahead of now after a step back.
local function write(limit, key, one, level)
  if limit.hold then return held_write(limit, key, keys[key_at + limit.held_at], one, level) end
  if level == 0 then
    one.level = 0
    return call('DEL', key)
  end
  local cost, engine = level - one.level, limit.engine
  one.level = level
  local lasts
  if engine == BUCKET then lasts = ceil_div(level, limit.p1)
  elseif engine == WINDOW then lasts = one.origin + one.extra - one.at
  elseif engine == INTERVAL then lasts = interval_wait(one.at, one.origin, level, limit.p1, limit.p2)
  elseif engine == SLIDING then lasts = sliding_wait(one, level, limit.p1)
  elseif engine == WARM_UP then lasts = level
  elseif engine == SLOTS then
    slots_change(one, cost, limit.p1, limit.p2)
    lasts = slots_wait(one, level) + limit.p3
  elseif engine == SPARSE then
    local why = sparse_change(key, one, cost, limit.p1, limit.p2)
    if why then return { err = why } end
    lasts = sparse_wait(key, one, limit.p1, limit.p2, level) + limit.p3
  else
    if cost > 0 then one.origin = one.at end
    if cost < 0 then one.origin = log_pull(key, one, -cost) end
    lasts = one.origin + limit.p1 - one.at
  end
  local goes = ceil_div(one.at + lasts, 1000) + 1
  if engine == BUCKET then return bucket_write(key, level, one.at, limit.weight, goes + GRACE_MS) end
  if engine == WINDOW then return window_write(key, level, one.origin, one.extra, goes) end
  if engine == INTERVAL then return interval_write(key, level, one.origin, goes) end
  if engine == SLIDING then return sliding_write(key, one, limit.p1, goes) end
  if engine == SLOTS then return slots_write(key, one, goes) end
  if engine == WARM_UP then return warm_write(key, one, goes) end
  if engine == SPARSE then return sparse_write(key, one, goes) end
  local keep
  if limit.count_denied == 1 then keep = limit.limit + 1 end
  return log_write(key, one, cost, keep, goes)
end
