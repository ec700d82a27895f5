-- The short way, for what nearly every decision is: a charge or a peek of limits whose states are as
-- they should be, written without a function or a table of its own, because Redis would create them at
-- every call. It is a text for one list of engines: what stands in   is repeated for each limit, `$`
-- being its number, and a line `@name` is that part of each limit's file in plain/.
--
-- It reads, admits and writes, and answers with the states as it read them. crates/core/src/algorithm computes the
-- verdict from them, which is cheaper than to compute it here. All keys are read at once.
--
-- What is not so plain (another operation, a clock that went back, a changed limit, something else
-- under the key) it leaves as it is: decide.lua goes on from that decision.

-- Where keys repeat, what each holds since it was written.
local held = repeats > 0 and {}
-- Whether all keys were read at once: then an absent one may be one of another type, too.
local joined, apart = false, true
-- What stands for an absent state: no number.
local ABSENT = '\255\255\255\255\255\255\255\255'
-- The texts of the last expiry and of now. Formatting a number is slow, and many keys have the same expiry.
local px_last, px_text, now_text
-- Whether all keys are read at once. What is no string cannot be.
local gathers = true

while groups > 0 and now < CEILING do
  local head = position
  local count, decisions, each, cost_count, op, cost, _
  local engine_1, limit_1, weight_1, ceiling_1, counted_1, p1_1, p2_1, p3_1, varied
  count, decisions, each, cost_count, op, _, engine_1, limit_1, weight_1, ceiling_1, counted_1, p1_1, p2_1, p3_1, cost, position =
    unpack_struct('<ddddddddddddddd', request, position)
  if op > PEEK or cost_count > 4000 then
    position = head
    break
  end
local capacity_1 = limit_1

  if gathers and key_at == 0 and key_count > 1 and key_count < 4000 and #KEYS > 0 then
    local found = call('MGET', unpack(KEYS))
    if not found.err then reply, joined = found, true end
    if joined and count > 1 then
      local absent = {}
      for at = 1, key_count do
        if not found[at] then absent[#absent + 1] = KEYS[at] end
      end
      if #absent > 0 and call('EXISTS', unpack(absent)) ~= 0 then reply, joined = {}, false end
    end
    apart = held or not joined
  end
  local costs, number, done, turns = nil, 0, 0, each
  if cost_count > 1 then
    costs, varied = { unpack_struct('<' .. string.rep('d', cost_count), request, position - 8) }, true
    position = costs[cost_count + 1]
  end
  if op == PEEK or cost == 0 and not varied then turns = 0 end
  local need_1 = cost * weight_1 
  for place = 1, decisions do
local at_1, level_1 = key_at + 1, 0
local raw_1 = reply[at_1]
if apart then
  local since = held and held[keys[at_1]]
  if since then raw_1 = since
  elseif raw_1 == nil then raw_1 = call('GET', keys[at_1]) end
  reply[at_1] = raw_1
end

local start_1, current_1, previous_1 = now - now % p1_1, 0, 0
if raw_1 then
  if #raw_1 ~= 32 then break end
  local began, span
  began, current_1, previous_1, span = unpack_struct('<dddd', raw_1)
  if not (span == p1_1 and began <= now and began >= 0 and current_1 >= 0 and previous_1 >= 0
      and current_1 * p1_1 <= CEILING and previous_1 * p1_1 <= CEILING
      and began % 1 + current_1 % 1 + previous_1 % 1 == 0) then break end
  local elapsed = now - began
  if elapsed >= p1_1 then
    if elapsed < 2 * p1_1 and current_1 > 0 then
      start_1, current_1, previous_1, elapsed = began + p1_1, 0, current_1, elapsed - p1_1
    else
      current_1, previous_1 = 0, 0
    end
  else
    start_1 = began
  end
  level_1 = current_1
  if previous_1 > 0 then
    local gone = previous_1 * elapsed
    level_1 = current_1 + previous_1 - (gone - gone % p1_1) / p1_1
  end
else
  reply[at_1] = ABSENT
end
-- A window that nothing was charged in has a key that goes with the window before it.
local kept_1 = current_1 > 0

    local before, refusal = admitted, false
    for _ = 1, turns do
      if varied then
        number = number + 1
        cost = costs[number]
        need_1 = cost * weight_1 
      end
      if cost > 0 and level_1 + need_1 <= capacity_1 then
        admitted = admitted + 1
level_1, current_1 = level_1 + need_1, current_1 + need_1

      end
    end

    if admitted > before then
if not refusal then
  if kept_1 then
    local written = call('SETRANGE', keys[at_1], '8', pack_struct('<d', current_1))
    if written ~= 32 then refusal = written.err
    elseif held then held[keys[at_1]] = pack_struct('<dddd', start_1, current_1, previous_1, p1_1) end
  else
    local state, fresh = pack_struct('<dddd', start_1, current_1, previous_1, p1_1), start_1 + 2 * p1_1
    local expires_1 = (fresh - fresh % 1000) / 1000 + 2
local px = expires_1 - base_ms
if px < least_ms then px = least_ms end
if px ~= px_last then px_last, px_text = px, string.format('%.0f', px) end

local written
if joined and not raw_1 then written = call('SET', keys[at_1], state, SET_EXPIRY, px_text, 'NX')
else written = call('SET', keys[at_1], state, SET_EXPIRY, px_text) end
-- What is there and was not read is of another type, and says so.
if not written then written = call('GET', keys[at_1]) end
refusal = written.err
if held and not refusal then held[keys[at_1]] = state end

  end
end

    elseif joined and count == 1 and not raw_1 then
      local found = call('GET', keys[at_1])
      refusal = found and found.err
    end
    key_at = key_at + count
    done = place
    if refusal then
      reasons = reasons or {}
      reasons[#reasons + 1], reasons[#reasons + 2] = short + done, refusal
      admitted = before
    end
  end
  short = short + done
  if done < decisions then
    position, skip = head, done
    break
  end
  groups = groups - 1
end
for at = key_at + 1, key_count do reply[at] = '' end
if groups == 0 then
  reply[key_count + 1] = pack_struct('<ddd', now, short, admitted)
  reply = table.concat(reply)
  if reasons then return { reply, unpack(reasons) } end
  return reply
end
