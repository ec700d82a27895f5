-- Many decisions in one call, each over one or more limits: judge every limit, then charge all or
-- none. Twin: crates/core/src/algorithm/decide.rs. The contract (KEYS, ARGV, reply) is in README.md beside this.

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
  if limit.hold then
    local full = cost > 0 and held_full_for(limit, one)
    if full then
      one.cause, one.retry = COUNT, full
      return 0
    end
    max_wait = min(max_wait, limit.p1)
  end
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

-- What a forced debit charges to each limit, as many numbers as its record has; and the most that an enforced one gets.
local function debits(limits, ones, cost)
  local charged, most = {}, 0
  for i = 1, #limits > 6 and 8 or 6 do
    local limit = limits[i]
    charged[i] = limit and debited(limit, ones[i], cost) or 0
    if limit and not limit.shadow then most = max(most, charged[i]) end
  end
  return charged, most
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

-- Gives back what no later reservation depends on, if the start of the reserved call has not come. `before`: whether it
-- was cancelled before.
local function cancel(limits, count, ones, record, record_key, before)
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
    ones.written = 1
    local reply = level and write(limits[1], keys[key_at + 1], one, level)
    if not refused(reply) then
      one.writes = level
      reply = record_cancel(record_key, record)
    end
    if refused(reply) then return nil, reply.err end
  end
  return answer_of(limits, count, ones, cancelled and 1 or 2, true, before and 1 or 0, 0, PEEK, 0)
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
  return record_write(record_key, record, record.ends)
end

-- Decides one cost. Returns the packed answer, or nil and why it could not be decided.
local function decide(limits, count, ones, op, cost, max_wait, last_key)
  -- What has happened before takes nothing and only tells how things stand.
  ones.remembered, ones.written = false, 0
  local marker, record_key, known, why
  if op == REFUND_ONCE then
    op, marker = REFUND, keys[key_at + last_key]
    local known_before = call('EXISTS', marker)
    if refused(known_before) then return nil, known_before.err end
    if known_before == 1 then cost, marker = 0, nil end
  elseif OF_ONCE[op] then
    op, record_key = OF_ONCE[op], keys[key_at + last_key]
    known, why = record_read(record_key, now)
    if known == false then return nil, why end
    if op == CANCEL then return cancel(limits, count, ones, known, record_key, why) end
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
    if op == COUNT_PARTS then
      if limit.engine == SLOTS then one.before = slots_newest(one, limit.p1, limit.p2, max_wait)
      else one.before, why = sparse_newest(key, one, limit.p1, limit.p2, max_wait) end
      if not one.before then return nil, why end
    end
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
    ones.remembered = marker
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
    ones.remembered = record_key
  end
  for i = 1, count do
    if levels[i] then
      ones.written = i
      local reply = write(limits[i], keys[key_at + i], ones[i], levels[i])
      if refused(reply) then return nil, reply.err end
      ones[i].writes = true
    end
  end
  if op == REFUND then
    for i = 1, count do
      local reply = levels[i] and limits[i].engine == LOG and log_drop(keys[key_at + i], ones[i].held)
      if refused(reply) then return nil, reply.err end
    end
  end
  return answer_of(limits, count, ones, allowed and 1 or 0, fitted, granted, place, op, cost)
end

local function decide_group(ones)
  local count, decisions, each, costs, op, max_wait
  count, decisions, each, costs, op, max_wait, position = unpack_struct('<dddddd', request, position)
  local limits, runs_alone, spread = {}, false, false
  for i = 1, count do
    limits[i] = {}
    position = read_limit(limits[i], request, position)
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
          undo(limits, ones)
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
