-- Many decisions in one call, each over one or more limits: judge every limit, then charge all or
-- none. Twin: src/algorithm/decide.rs. The contract (KEYS, ARGV, reply) is in README.md beside this.

local REFUND, RESET, FORCE, AT_MOST, RESERVE, REFUND_ONCE = 3, 4, 5, 6, 7, 8
local BUCKET, WINDOW, INTERVAL, LOG, SLIDING, SLOTS = 1, 2, 3, 4, 5, 6
local NEVER = -1
local FITS, COUNT, MIN_GAP, ABOVE = 0, 1, 2, 3 -- why a limit denies

-- How long the id of a refund is remembered. Twin: REFUND_ID_LASTS in crates/store/src/part.rs.
local REFUND_ID_PX = 86400000

local function read(limit, key, now)
  local engine = limit.engine
  if engine == BUCKET then return bucket_read(key, now, limit.weight, limit.p1) end
  if engine == WINDOW then return window_read(key, now, limit.p1, limit.p2, limit.p3) end
  if engine == INTERVAL then return interval_read(key, now, limit.ceiling, limit.p1, limit.p2, limit.p3) end
  if engine == SLIDING then return sliding_read(key, now, limit.p1) end
  if engine == SLOTS then return slots_read(key, now, limit.p1, limit.p2) end
  return log_read(key, now, limit.p1)
end

local function wait(limit, key, one, excess)
  local engine = limit.engine
  if engine == BUCKET then return ceil_div(excess, limit.p1) end
  if engine == WINDOW then return one.origin + one.extra - one.at end
  if engine == INTERVAL then return interval_wait(one.at, one.origin, excess, limit.p1, limit.p2) end
  if engine == SLIDING then return sliding_wait(one, excess, limit.p1) end
  if engine == SLOTS then return slots_wait(one, excess) end
  return log_wait(key, one, excess, limit.p1)
end

local function reset_after(limit, key, one)
  if one.level == 0 then return 0 end
  return wait(limit, key, one, one.level)
end

local function remaining(limit, one)
  local room = limit.capacity - one.level
  if room <= 0 then return 0 end
  return floor_div(room, limit.weight)
end

-- What a log that counts denied attempts records of one, admitted or not; 0 for any other limit.
local function attempt(limit, cost)
  if limit.engine ~= LOG or limit.count_denied == 0 then return 0 end
  return min(cost, limit.limit + 1)
end

-- What remains of a log that counts denied attempts is told with the attempt of a peek counted.
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
  elseif engine == SLOTS then
    slots_change(one, cost, limit.p1, limit.p2)
    lasts = slots_wait(one, level)
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
  local keep
  if limit.count_denied == 1 then keep = limit.limit + 1 end
  return log_write(key, one, cost, keep, goes)
end

-- Whether `cost` fits on top of the level, and how long until it does.
local function judge(limit, key, one, cost)
  one.cause, one.retry = ABOVE, NEVER
  if cost > limit.limit then return end
  local excess, left = one.level + cost * limit.weight - limit.capacity, 0
  if cost > 0 then left = gap(limit, one) end
  one.cause, one.retry = FITS, 0
  if excess > 0 then one.cause = COUNT elseif left > 0 then one.cause = MIN_GAP else return end
  local recorded = attempt(limit, cost)
  excess = excess + recorded
  if recorded > 0 then left = limit.p2 end
  if excess > 0 then one.retry = max(wait(limit, key, one, excess), left) else one.retry = left end
end

local function judge_at_most(limit, key, one, cost)
  local granted = min(cost, remaining(limit, one))
  if granted > 0 then
    one.cause, one.retry = FITS, 0
    return granted
  end
  judge(limit, key, one, min(cost, 1))
  return 0
end

local function judge_reserve(limit, key, one, cost, max_wait)
  if one.retry <= 0 then return 0 end
  local beyond = max(one.level + cost * limit.weight - limit.ceiling, 0)
  local excess = max(wait(limit, key, one, beyond), one.retry - max_wait)
  if excess > 0 then
    one.retry = excess
    return 0
  end
  local place = one.retry
  one.cause, one.retry = FITS, 0
  return place
end

-- The level to write, or nil if the decision leaves this limit's state as it is.
local function next_level(limit, one, op, allowed, cost, granted)
  if op == PEEK then return nil end
  if op == RESET then return 0 end
  if op == REFUND then
    if cost == 0 or one.level == 0 then return nil end
    if limit.engine == SLIDING then return sliding_refund(one, cost, limit.p1) end
    return max(one.level - cost * limit.weight, 0)
  end
  if cost == 0 then return nil end
  -- More would be dropped again, and a level at its ceiling could record no attempt after it.
  local recorded = attempt(limit, granted)
  if allowed and recorded > 0 then granted = recorded end
  if allowed then return min(one.level + granted * limit.weight, limit.ceiling) end
  if op == CHARGE and limit.count_denied == 1 then
    return min(one.level + min(cost, limit.limit + 1) * limit.weight, limit.ceiling)
  end
  if one.shift > 0 then return one.level end
  return nil
end

-- Decides one cost. Returns the packed answer, or nil and why it could not be decided.
local function decide(limits, count, ones, op, cost, max_wait)
  -- What has happened before takes nothing and only tells how things stand.
  local marker
  if op == REFUND_ONCE then
    op, marker = REFUND, keys[key_at + count + 1]
    if call('EXISTS', marker) == 1 then cost, marker = 0, nil end
  end
  local fitted, granted, place = true, cost, 0
  for i = 1, count do
    local limit, one, key = limits[i], ones[i], keys[key_at + i]
    local level, at, origin, extra, shift, span, held = read(limit, key, now)
    if not level then return nil, at end
    one.level, one.at, one.origin, one.extra, one.shift = level, at, origin, extra, shift
    one.before = level
    one.span, one.held = span, held
    judge(limit, key, one, cost)
    if op == AT_MOST then granted = judge_at_most(limit, key, one, cost)
    elseif op == RESERVE then place = judge_reserve(limit, key, one, cost, max_wait) end
    fitted = fitted and one.cause == FITS
  end
  local allowed = fitted or op == FORCE or op == REFUND or op == RESET
  if not allowed then granted = 0 end
  if marker then
    local reply = call('SET', marker, 1, 'PX', REFUND_ID_PX)
    if refused(reply) then return nil, reply.err end
  end
  for i = 1, count do
    local level = next_level(limits[i], ones[i], op, allowed, cost, granted)
    if level then
      local reply = write(limits[i], keys[key_at + i], ones[i], level)
      if refused(reply) then return nil, reply.err end
    end
  end
  local answer = pack_struct('<dddd', allowed and 1 or 0, fitted and 1 or 0, granted, place)
  for i = 1, count do
    local limit, one = limits[i], ones[i]
    local retry = one.retry
    if allowed then retry = 0 end
    answer = answer .. pack_struct('<ddddd', one.cause, remaining_after(limit, one, op, cost), retry,
      reset_after(limit, keys[key_at + i], one), one.before)
  end
  return answer
end

local function read_limit(request, position)
  local limit = {}
  limit.engine, limit.limit, limit.weight, limit.ceiling, limit.count_denied, limit.p1, limit.p2, limit.p3, position =
    unpack_struct('<dddddddd', request, position)
  limit.capacity = limit.limit * limit.weight
  limit.spread = limit.engine == WINDOW and limit.p2 == SPREAD
  return limit, position
end

local function decide_group(ones)
  local count, decisions, each, told, op, max_wait
  count, decisions, each, told, op, max_wait, position = unpack_struct('<dddddd', request, position)
  local limits, runs_alone, spread = {}, false, false
  for i = 1, count do
    limits[i], position = read_limit(request, position)
    runs_alone, spread = runs_alone or limits[i].engine == LOG, spread or limits[i].spread
    ones[i] = ones[i] or {}
  end
  local phase_from, cost = position + 8 * told, nil
  local phase_at = phase_from
  for number = 1, decisions do
    if spread then
      for i = 1, count do
        local phase
        phase, phase_at = unpack_struct('<d', request, phase_at)
        if limits[i].spread then limits[i].p3 = phase end
      end
    end
    for _ = 1, each do
      if position < phase_from then cost, position = unpack_struct('<d', request, position) end
      if number > skip then
        local ran, answer, why
        -- A log's entries are looked at one by one, and any of them may be something else.
        if runs_alone then ran, answer, why = pcall(decide, limits, count, ones, op, cost, max_wait)
        else ran, answer, why = true, decide(limits, count, ones, op, cost, max_wait) end
        if not (ran and answer) then
          reasons = reasons or {}
          reasons[#reasons + 1] = why or answer
          answer = pack_struct('<d', -1)
        end
        reply[#reply + 1] = answer
      end
    end
    if number > skip then key_at = key_at + count + (op == REFUND_ONCE and 1 or 0) end
  end
  position, skip = phase_at, 0
end

local ones = {}
for _ = 1, groups do decide_group(ones) end
reply[#reply + 1] = pack_struct('<ddd', now, short, admitted)
reply = table.concat(reply)
if reasons then return { reply, unpack(reasons) } end
return reply
