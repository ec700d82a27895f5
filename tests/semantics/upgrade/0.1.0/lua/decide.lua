-- Many decisions in one call, each over one or more limits: judge every limit, then charge all or
-- none. Twin: src/algorithm/decide.rs. The contract (KEYS, ARGV, reply) is in README.md beside this.

local REFUND, RESET, FORCE, AT_MOST, RESERVE, REFUND_ONCE = 3, 4, 5, 6, 7, 8
local BUCKET, WINDOW, INTERVAL, LOG, SLIDING, SLOTS, WARM_UP, RING = 1, 2, 3, 4, 5, 6, 7, 8
local QUEUE, CHARGE_AFTER = 1, 2 -- what a bucket is besides a meter
local COUNT_PARTS = 14
local NEVER = -1
local FITS, COUNT, MIN_GAP, ABOVE = 0, 1, 2, 3 -- why a limit denies

-- Operations under an id, and what they do the first time.
local CANCEL = 13
local OF_ONCE = { [9] = CHARGE, [10] = FORCE, [11] = AT_MOST, [12] = RESERVE, [CANCEL] = CANCEL }

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
  if engine == RING then return ring_read(key, now, limit.p1, limit.p2) end
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
  if engine == RING then return ring_wait(key, one, excess) end
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
    lasts = slots_wait(one, level)
  elseif engine == RING then
    ring_change(key, one, cost, limit.p1, limit.p2)
    lasts = ring_wait(key, one, level)
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
  if engine == RING then return ring_write(key, one, goes) end
  local keep
  if limit.count_denied == 1 then keep = limit.limit + 1 end
  return log_write(key, one, cost, keep, goes)
end

-- Whether `cost` fits on top of the level, and how long until it does.
local function judge(limit, key, one, cost)
  one.cause, one.retry = ABOVE, NEVER
  if cost > limit.limit then return end
  if limit.hold then
    one.retry = held_start_of(limit, key, one, cost) - one.at
    one.cause = one.retry > 0 and COUNT or FITS
    return
  end
  if limit.engine == WARM_UP then
    -- It waits for the backlog only.
    one.cause, one.retry = one.origin > 0 and COUNT or FITS, one.origin
    return
  end
  local excess, left = one.level + cost * limit.upfront - limit.capacity, 0
  if cost > 0 then left = gap(limit, one) end
  one.cause, one.retry = FITS, 0
  if excess > 0 then one.cause = COUNT elseif left > 0 then one.cause = MIN_GAP else return end
  local recorded = attempt(limit, cost)
  excess = excess + recorded
  if recorded > 0 then left = limit.p2 end
  if excess > 0 then one.retry = max(wait(limit, key, one, excess), left) else one.retry = left end
end

-- How much of `cost` could be granted. A limit with charge-after grants all or nothing.
local function judge_at_most(limit, key, one, cost)
  local least = min(cost, 1)
  if limit.upfront == 0 then least = cost end
  judge(limit, key, one, least)
  if one.cause ~= FITS then return 0 end
  if limit.upfront == 0 then return cost end
  return min(cost, remaining(limit, one))
end

local function judge_reserve(limit, key, one, cost, max_wait)
  if one.retry <= 0 then return 0 end
  if limit.hold then max_wait = min(max_wait, limit.p1) end
  local after = one.level + cost * limit.weight
  if limit.engine == WARM_UP then
    local _, time = warm_time(one.span, one.extra, cost)
    after = one.origin + time
  end
  local beyond = max(after - limit.ceiling, 0)
  if beyond > 0 then beyond = wait(limit, key, one, beyond) end
  local excess = max(beyond, one.retry - max_wait)
  if excess > 0 then
    one.retry = excess
    return 0
  end
  local place = one.retry
  one.cause, one.retry = FITS, 0
  return place
end

-- Whether a limit in shadow mode would admit what is granted.
local function shadow_fits(limit, key, one, op, granted)
  if op == AT_MOST then judge(limit, key, one, granted) end
  return one.cause == FITS
end

-- The level to write, or nil if the decision leaves this limit's state as it is.
local function next_level(limit, one, op, allowed, cost, granted)
  if op == PEEK or op == COUNT_PARTS then return nil end
  if op == RESET then return 0 end
  if op == REFUND then
    if cost == 0 or one.level == 0 then return nil end
    if limit.engine == SLIDING then return sliding_refund(one, cost, limit.p1) end
    return max(one.level - cost * limit.weight, 0)
  end
  if cost == 0 then return nil end
  if op == FORCE and limit.debt_level >= 0 then
    local charged = debited(limit, one, cost)
    if charged == 0 then return nil end
    return one.level + charged * limit.weight
  end
  if allowed and limit.engine == WARM_UP then return warm_spend(one, granted) end
  -- More would be dropped again, and a level at its ceiling could record no attempt after it.
  local recorded = attempt(limit, granted)
  if allowed and recorded > 0 then granted = recorded end
  if allowed then return min(one.level + granted * limit.weight, limit.ceiling) end
  if op == CHARGE and limit.count_denied == 1 then
    return min(one.level + min(cost, limit.limit + 1) * limit.weight, limit.ceiling)
  end
  if one.shift > 0 or limit.hold and one.span > 0 then return one.level end
  return nil
end

-- Reads the state of a limit as it is now. Returns what is wrong with it, if anything is.
local function read_one(limit, one, key)
  local level, at, origin, extra, shift, span, held = read(limit, key, now)
  if not level then return at end
  one.level, one.at, one.origin, one.extra, one.shift = level, at, origin, extra, shift
  one.before, one.span, one.held = level, span, held
  one.cause, one.retry = FITS, 0
  if limit.hold then return held_read(limit, one, keys[key_at + limit.held_at]) end
end

local function read_all(limits, count, ones)
  for i = 1, count do
    local why = read_one(limits[i], ones[i], keys[key_at + i])
    if why then return why end
  end
end

-- The packed answer. allowed: 0 denied, 1 allowed, 2 allowed as it was before.
local function answer_of(limits, count, ones, allowed, fitted, granted, place, op, cost)
  local answer = pack_struct('<dddd', allowed, fitted and 1 or 0, granted, place)
  for i = 1, count do
    local limit, one = limits[i], ones[i]
    local retry = one.retry
    if allowed > 0 or limit.shadow then retry = 0 end
    answer = answer .. pack_struct('<ddddd', one.cause, remaining_after(limit, one, op, cost), retry,
      reset_after(limit, keys[key_at + i], one), one.before)
  end
  return answer
end

-- Gives back what no later reservation depends on, if the start of the reserved call has not come.
local function cancel(limits, count, ones, record, record_key)
  local why = read_all(limits, count, ones)
  if why then return nil, why end
  local cancelled = record and record_wait(record, now) > 0
  if cancelled then
    local one, level = ones[1], nil
    if not limits[1].hold then level = record_cancelled(limits[1], one, record)
    elseif one.held.length > 0 or #one.starts > 0 then
      held_release(one, record.level, record.cost)
      level = one.level
    end
    local reply = level and write(limits[1], keys[key_at + 1], one, level)
    if refused(reply) then return nil, reply.err end
    call('DEL', record_key)
  end
  return answer_of(limits, count, ones, cancelled and 1 or 2, true, 0, 0, PEEK, 0)
end

-- Remembers what is admitted, before it is charged: a charge without a record could be made twice.
local function remember(limits, ones, levels, record_key, op, cost, granted, fitted, place, charged)
  local one, limit = ones[1], limits[1]
  local record = { cost = cost, granted = granted, fitted = fitted and 1 or 0, start = now + place, wait = place,
    level = 0, at = 0, limit = 0, weight = 0, p1 = 0, p2 = 0, charged = charged,
    ends = now + (charged and DEBIT_LASTS or place + RECORD_LASTS) }
  if op == RESERVE then
    record.level, record.at = levels[1] or one.level, one.at
    -- What is held is named by its number.
    if limit.hold then record.level = one.start and granted > 0 and held_number(one) or 0 end
    record.limit, record.weight, record.p1, record.p2 = record_numbers(limit, limit.engine)
  end
  return record_write(record_key, record)
end

-- Decides one cost. Returns the packed answer, or nil and why it could not be decided.
local function decide(limits, count, ones, op, cost, max_wait, last_key)
  -- What has happened before takes nothing and only tells how things stand.
  local marker, record_key, known, why
  if op == REFUND_ONCE then
    op, marker = REFUND, keys[key_at + last_key]
    if call('EXISTS', marker) == 1 then cost, marker = 0, nil end
  elseif OF_ONCE[op] then
    op, record_key = OF_ONCE[op], keys[key_at + last_key]
    known, why = record_read(record_key, now)
    if known == false then return nil, why end
    if op == CANCEL then return cancel(limits, count, ones, known, record_key) end
    if known then
      if known.cost ~= cost then return nil, OTHER_COST .. whole(known.cost) end
      why = read_all(limits, count, ones)
      if why then return nil, why end
      for i = 1, op == FORCE and count or 0 do ones[i].before = known.charged[i] or 0 end -- what it charged then
      return answer_of(limits, count, ones, 2, known.fitted == 1, known.granted, record_wait(known, now), PEEK, 0)
    end
  end
  local fitted, granted, place, levels, charged = true, cost, 0, {}, nil
  for i = 1, count do
    local limit, one, key = limits[i], ones[i], keys[key_at + i]
    why = read_one(limit, one, key)
    if why then return nil, why end
    judge(limit, key, one, cost)
    if op == COUNT_PARTS and limit.engine == RING then ring_make_list(key, one, limit.p1, limit.p2) end
    if op == COUNT_PARTS then one.before = slots_newest(one, limit.p1, limit.p2, max_wait) end
    if op == AT_MOST and not limit.shadow then granted = min(granted, judge_at_most(limit, key, one, cost))
    elseif op == RESERVE then place = judge_reserve(limit, key, one, cost, max_wait) end
    if not limit.shadow then
      place = max(place, pace(limit, one))
      fitted = fitted and one.cause == FITS
    end
  end
  local forced = op == FORCE or op == REFUND or op == RESET
  local allowed = fitted or forced
  if not allowed then granted = 0 end
  if forced or not fitted then place = 0 end
  if marker then
    local reply = call('SET', marker, 1, 'PX', REFUND_ID_PX)
    if refused(reply) then return nil, reply.err end
  end
  for i = 1, count do
    ones[i].forget = op == RESET
    if op == RESERVE and place > 0 then ones[i].start = ones[i].at + place end
  end
  for i = 1, count do
    local limit, one, charges = limits[i], ones[i], allowed
    if limit.shadow and allowed then charges = forced or shadow_fits(limit, keys[key_at + i], one, op, granted) end
    levels[i] = next_level(limit, one, op, charges, cost, granted) or false
  end
  if op == FORCE then charged, granted = debits(limits, ones, cost) end
  if record_key and allowed then
    local reply = remember(limits, ones, levels, record_key, op, cost, granted, fitted, place, charged)
    if refused(reply) then return nil, reply.err end
  end
  for i = 1, count do
    if levels[i] then
      local reply = write(limits[i], keys[key_at + i], ones[i], levels[i])
      if refused(reply) then return nil, reply.err end
    end
  end
  return answer_of(limits, count, ones, allowed and 1 or 0, fitted, granted, place, op, cost)
end

local function read_limit(request, position)
  local limit = {}
  limit.engine, limit.limit, limit.weight, limit.ceiling, limit.count_denied, limit.p1, limit.p2, limit.p3, position =
    unpack_struct('<dddddddd', request, position)
  limit.shadow, limit.count_denied = limit.count_denied >= 2, limit.count_denied % 2
  limit.capacity, limit.upfront = limit.limit * limit.weight, limit.weight
  if limit.engine == BUCKET and limit.p2 == QUEUE then limit.undelayed = limit.p3 end
  if limit.engine == BUCKET and limit.p2 == CHARGE_AFTER then limit.capacity, limit.upfront = limit.p3, 0 end
  if limit.engine == WARM_UP then limit.upfront = 0 end
  limit.hold = limit.engine == LOG and limit.p3 == 1
  limit.spread = limit.engine == WINDOW and limit.p2 == SPREAD
  return limit, position
end

local function decide_group(ones)
  local count, decisions, each, costs, op, max_wait
  count, decisions, each, costs, op, max_wait, position = unpack_struct('<dddddd', request, position)
  local limits, runs_alone, spread = {}, false, false
  for i = 1, count do
    limits[i], position = read_limit(request, position)
    runs_alone, spread = runs_alone or limits[i].engine == LOG, spread or limits[i].spread
    ones[i] = ones[i] or {}
  end
  -- After the keys of the limits come those of what they hold, and that of an id.
  local last_key = count
  for i = 1, count do
    if limits[i].hold then last_key = last_key + 1 end
    limits[i].held_at = last_key
  end
  if op >= REFUND_ONCE and op ~= COUNT_PARTS then last_key = last_key + 1 end
  if op == FORCE or OF_ONCE[op] == FORCE then
    for i = 1, count do limits[i].debt_level, position = unpack_struct('<d', request, position) end
  end
  local phase_from, cost = position + 8 * costs, nil
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
        if runs_alone then ran, answer, why = pcall(decide, limits, count, ones, op, cost, max_wait, last_key)
        else ran, answer, why = true, decide(limits, count, ones, op, cost, max_wait, last_key) end
        if not (ran and answer) then
          reasons = reasons or {}
          reasons[#reasons + 1] = why or answer
          answer = pack_struct('<d', -1)
        end
        reply[#reply + 1] = answer
      end
    end
    if number > skip then key_at = key_at + last_key end
  end
  position, skip = phase_at, 0
end

local ones = {}
for _ = 1, groups do decide_group(ones) end
reply[#reply + 1] = pack_struct('<ddd', now, short, admitted)
reply = table.concat(reply)
if reasons then return { reply, unpack(reasons) } end
return reply
