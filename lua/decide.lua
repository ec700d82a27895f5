-- Many decisions in one call, each over one or more limits: judge every limit, then charge all or
-- none. Twin: crates/core/src/algorithm/decide.rs. The contract (KEYS, ARGV, reply) is in README.md beside this.

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
  one.cause, one.retry, one.raw, one.writes, one.undo = FITS, 0, last_raw, false, nil
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
          -- Nothing of it stays: a command may have been refused after others were not.
          if ones.remembered then call('SET', ones.remembered, '', 'PXAT', 1) end
          for i = 1, ones.written do
            local limit, one, key = limits[i], ones[i], keys[key_at + i]
            local undo = one.undo or one.held and one.held.undo or {}
            for at = #undo, 1, -1 do
              local command = undo[at]
              local reply = refused(call(unpack(command)))
              if reply and command[1] == 'RPOP' then call('LTRIM', key, 0, -1 - command[3]) end
              if reply and command[1] == 'DEL' and refused(call('SET', command[2], '', 'PXAT', 1)) then
                call('PEXPIREAT', command[2], 1)
              end
            end
            if one.writes and limit.engine ~= LOG and limit.engine ~= SPARSE then
              -- Written twice, because when it goes is known once it is there.
              if not one.raw then
                if refused(call('DEL', key)) then call('SET', key, '', 'PXAT', 1) end
              elseif refused(call('SET', key, one.raw, 'PX', 60000)) then
                call('SETRANGE', key, 0, one.raw)
                call('PEXPIREAT', key, whole(ceil_div(now, 1000) + REFUND_ID_PX))
              elseif not read_one(limit, one, key) then
                local goes = ceil_div(one.at + reset_after(limit, key, one), 1000) + 1 + GRACE_MS
                call('SET', key, one.raw, SET_EXPIRY, span_of(goes))
              end
            end
          end
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
