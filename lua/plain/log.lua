-- A sliding log, the short way. Twin: ../log.lua. It reads the ends of the list, and answers with three
-- things: the total before the entries that count, the entry that frees what a denied charge
-- lacks (the oldest, where none was denied), and the newest, which is a log that says the same.

@limit
local limit_$, p1_$, p2_$
_, limit_$, _, _, _, p1_$, p2_$, _, position = unpack_struct('<dddddddd', request, position)
gathers = false

@state
local at_$, level_$, raw_$ = key_at + $, 0, false

@read
local found_$ = call('LRANGE', keys[at_$], '0', '4')
local length_$ = #found_$
if found_$.err or length_$ ~= 0 and length_$ ~= 3 and length_$ ~= 5 then break end
local base_$, first_$, total_$, newest_$, last_$, dead_$, capacity_$ = 0, 0, 0, 0, 0, 0, limit_$
if length_$ > 0 then
  first_$, total_$ = tonumber(found_$[2]), tonumber(found_$[3])
  newest_$, last_$ = first_$, total_$
  if length_$ == 5 then
    local ends = call('LRANGE', keys[at_$], '-2', '-1')
    newest_$, last_$ = tonumber(ends[1]), tonumber(ends[2])
  end
  if not (first_$ and total_$ and newest_$ and last_$ and first_$ >= 0 and newest_$ >= first_$ and newest_$ <= now
      and total_$ >= 0 and total_$ < CEILING and last_$ >= 0 and last_$ < CEILING
      and first_$ % 1 + newest_$ % 1 + total_$ % 1 + last_$ % 1 == 0) then break end
  if newest_$ + p1_$ <= now then
    -- All are dead, and go but for the total that they end with.
    dead_$, base_$, reply[at_$] = -1, last_$, ABSENT
  elseif first_$ + p1_$ > now then
    base_$ = tonumber(found_$[1])
  else
    dead_$, base_$, first_$, total_$ = 1, total_$, tonumber(found_$[4]), tonumber(found_$[5])
    if first_$ and first_$ + p1_$ <= now then
      local low, high, step = 2, call('LLEN', keys[at_$]), 1
      if type(high) == 'table' then break end
      high = (high - 3) / 2
      while first_$ and low < high do
        local probe = low + math.min(step - 1, (high - low - (high - low) % 2) / 2)
        first_$ = tonumber(call('LINDEX', keys[at_$], 2 * probe + 1))
        if not first_$ then break end
        if first_$ + p1_$ <= now then low, step = probe + 1, step * 2 else high, step = probe, high end
      end
      local live = call('LRANGE', keys[at_$], 2 * low, 2 * low + 2)
      dead_$, base_$, total_$ = low, tonumber(live[1]), tonumber(live[3])
      first_$ = first_$ and tonumber(live[2])
    end
  end
  if not (base_$ and first_$ and total_$ and base_$ >= 0 and base_$ < CEILING and first_$ <= newest_$
      and total_$ >= 0 and total_$ < CEILING and base_$ % 1 + first_$ % 1 + total_$ % 1 == 0) then break end
  level_$ = last_$ - base_$
  if level_$ < 0 then level_$ = level_$ + CEILING end
  -- Too soon after the newest, nothing fits.
  if level_$ > 0 and now - newest_$ < p2_$ then capacity_$ = -1 end
else
  reply[at_$] = ABSENT
end
local was_$ = level_$

@charge
level_$ = level_$ + need_$
if p2_$ > 0 then capacity_$ = -1 end

@answer
if length_$ > 0 and dead_$ >= 0 then
  local excess, freed = level_$ + need_$ - limit_$, total_$ - base_$
  if freed < 0 then freed = freed + CEILING end
  local denied = turns == 0 or admitted - before < turns
  if denied and excess > freed and excess <= was_$ then
    local low, high, step, is_found = dead_$ + 1, call('LLEN', keys[at_$]), 1, false
    if type(high) == 'table' then
      admitted = before
      break
    end
    high = (high - 3) / 2
    repeat
      local probe = low + math.min(step - 1, (high - low - (high - low) % 2) / 2)
      local entry = call('LRANGE', keys[at_$], 2 * probe + 1, 2 * probe + 2)
      local at, total = tonumber(entry[1]), tonumber(entry[2])
      if not (at and total and at >= 0 and at <= newest_$ and total >= 0 and total < CEILING
          and at % 1 + total % 1 == 0) then
        is_found = false
        break
      end
      freed = total - base_$
      if freed < 0 then freed = freed + CEILING end
      if freed < excess then low, step = probe + 1, step * 2
      else high, step, is_found, first_$, total_$ = probe, high, true, at, total end
    until low > high or low == high and is_found
    if not is_found then
      admitted = before
      break
    end
  end
  if varied and denied then
    admitted = before
    break
  end
  reply[at_$] = pack_struct('<ddddd', base_$, first_$, total_$, newest_$, last_$)
end

@undo
-- What was written is the newest entry.
do
  local total, ends = last_$ + level_$ - was_$, call('LRANGE', keys[at_$], '-2', '-1')
  if total >= CEILING then total = total - CEILING end
  if ends[1] == now_text and ends[2] == string.format('%.0f', total) then
    if was_$ > 0 and newest_$ == now then call('LSET', keys[at_$], '-1', string.format('%.0f', last_$))
    elseif length_$ == 0 then
      if type(call('DEL', keys[at_$])) == 'table' then call('LTRIM', keys[at_$], '1', '0') end
    elseif call('LTRIM', keys[at_$], '0', '-3').err then call('RPOP', keys[at_$], '2') end
  end
end

@write
if not refusal then
  local total, written = last_$ + level_$ - was_$, nil
  if total >= CEILING then total = total - CEILING end
  local text = string.format('%.0f', total)
  now_text = now_text or string.format('%.0f', now)
  if was_$ > 0 and newest_$ == now then written = call('LSET', keys[at_$], '-1', text)
  elseif length_$ > 0 then written = call('RPUSH', keys[at_$], now_text, text)
  else written = call('RPUSH', keys[at_$], '0', now_text, text) end
  refusal = type(written) == 'table' and written.err
  if not refusal then
    if dead_$ < 0 then written = call('LTRIM', keys[at_$], '-3', '-1')
    elseif dead_$ > 0 then written = call('LTRIM', keys[at_$], 2 * dead_$, '-1') end
    refusal = dead_$ ~= 0 and written.err
  end
  if not refusal then
    local fresh = now + p1_$
    local expires_$ = (fresh - fresh % 1000) / 1000 + 2
    @expiry
    written = call(KEY_EXPIRY, keys[at_$], px_text)
    refusal = type(written) == 'table' and written.err
  end
end
