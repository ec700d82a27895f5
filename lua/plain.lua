-- The short way, for what nearly every decision is: a charge or a peek of limits whose states are as
-- they should be, written without a function or a table of its own, because Redis would create them at
-- every call. It is a text for one list of engines: what stands in << >> is repeated for each limit, `$`
-- being its number, and a line `@name` is that part of each limit's file in plain/.
--
-- It reads, admits and writes, and answers with the states as it read them. crates/core/src/algorithm computes the
-- verdict from them, which is cheaper than to compute it here. All keys are read at once.
--
-- Whether a number is whole is asked by adding 2^52 and taking it off again, which rounds: `%` costs ten times as much.
--
-- What is not so plain (another operation, a clock that went back, a changed limit, something else
-- under the key) it leaves as it is: decide.lua goes on from that decision.
--
-- The lines that end with `--@one` are of decisions with one cost for all limits. Those that end with `--@own` are of
-- decisions whose limits have costs of their own: they read what budget.lua reads, which goes on from the decision that is
-- not so plain. Each of their costs is above 0, so all of them are judged.

-- Its names end with it: Lua has 200 of them at a time, and eight limits need most of those.
do

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
  local count, decisions, each, cost_count, op, cost, varied, _ --@one
  local count, decisions, cost, varied, _ --@own
  count, decisions, each, cost_count, op, _, position = unpack_struct('<dddddd', request, position) --@one
  count, decisions, _, _, position = unpack_struct('<dddd', request, position) --@own
  if op > PEEK or cost_count > 4000 then --@one
    position = head --@one
    break --@one
  end --@one
  @limit --@one
  @limit_of_own --@own
  cost, position = unpack_struct('<d', request, position) --@one
  cost = 1 --@own
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
  local costs, number, done, turns = nil, 0, 0, each --@one
  local done, turns = 0 --@own
  if cost_count > 1 then --@one
    costs, varied = { unpack_struct('<' .. string.rep('d', cost_count), request, position - 8) }, true --@one
    position = costs[cost_count + 1] --@one
  end --@one
  if op == PEEK or cost == 0 and not varied then turns = 0 end --@one
  @need --@one
  for place = 1, decisions do
    turns, position = 2 - unpack_struct('<d', request, position), position + 40 --@own
    @own --@own
    @state
    @read
    local before, refusal = admitted, false
    for _ = 1, turns do
      if varied then --@one
        number = number + 1 --@one
        cost = costs[number] --@one
        @renew --@one
      end --@one
      if cost > 0<< and level_$ + need_$ <= capacity_$>> then
        admitted = admitted + 1
        @charge
      end
    end
    @answer
    if admitted > before then
      @write
      if refusal and not refusal:find('OOM', 1, true) then
        -- Nothing of it stays charged. For want of memory, only the first write is refused.
        @undo
      end
    elseif joined and count == 1 and not raw_1 then
      local text = call('GET', keys[at_1])
      refusal = text and text.err
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
  -- One decision of one limit, as most where calls are few: without a table to join.
  if key_count == 1 and not reasons then return reply[1] .. pack_struct('<ddd', now, short, admitted) end
  reply[key_count + 1] = pack_struct('<ddd', now, short, admitted)
  reply = table.concat(reply)
  if reasons then return { reply, unpack(reasons) } end
  return reply
end

end
