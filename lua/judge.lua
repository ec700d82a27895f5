-- What every driver does with one limit: reads it, judges a cost, finds its next level, and takes back what was written. Twins:
-- judge.rs and `next_level` of decide.rs in crates/core/src/algorithm/.

-- Reads the numbers of a limit into `limit`. Returns where the next ones begin.
local function read_limit(limit, request, position)
  limit.engine, limit.limit, limit.weight, limit.ceiling, limit.count_denied, limit.p1, limit.p2, limit.p3, position =
    unpack_struct('<dddddddd', request, position)
  limit.shadow, limit.count_denied = limit.count_denied >= 2, limit.count_denied % 2
  limit.capacity, limit.upfront = limit.limit * limit.weight, limit.weight
  if limit.engine == BUCKET and limit.p2 == QUEUE then limit.undelayed = limit.p3 end
  if limit.engine == BUCKET and limit.p2 == CHARGE_AFTER then limit.capacity, limit.upfront = limit.p3, 0 end
  if limit.engine == WARM_UP then limit.upfront = 0 end
  limit.hold = limit.engine == LOG and limit.p3 == 1
  limit.spread = limit.engine == WINDOW and limit.p2 == SPREAD
  return position
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

-- Takes back what a decision has written: a command may have been refused after others were not.
local function undo(limits, ones)
  if ones.remembered then call('SET', ones.remembered, '', 'PXAT', 1) end
  for i = 1, ones.written do
    local limit, one, key = limits[i], ones[i], keys[key_at + i]
    local commands = one.undo or one.held and one.held.undo or {}
    for at = #commands, 1, -1 do
      local command = commands[at]
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
end
