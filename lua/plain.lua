-- The short way, for what nearly every decision is: a charge or a peek of limits whose states are as
-- they should be, written without a function or a table of its own, because Redis makes those anew at
-- every call. It is a text for one list of engines: what stands in << >> is repeated for each limit, `$`
-- being its number, and a line `@name` is that part of each limit's file in plain/.
--
-- What is not so plain (another operation, a clock that went back, a changed limit, something else
-- under the key) it leaves as it is: decide.lua goes on from that decision.

while groups > 0 and now < CEILING do
  local head = position
  local count, decisions, each, op, _
  count, decisions, each, op, _, position = unpack_struct('<ddddd', request, position)
  if op > PEEK or decisions * each > 4000 then
    position = head
    break
  end
  @limit
  local costs = { unpack_struct('<' .. string.rep('d', decisions * each), request, position) }
  local done = 0
  while done < decisions do
    @read
    local changed, before = false, filled
    for number = done * each + 1, done * each + each do
      local cost = costs[number]
      local fits = true<< and cost <= limit_$ and level_$ + cost * weight_$ <= capacity_$>>
      if fits and cost > 0 and op == CHARGE then
        changed = true
        @charge
      end
      @stand
      filled = filled + 1
      if fits then
        answers[filled] = pack_struct('<dddd<<dddd>>', 1, 1, cost, 0<<, 0, left_$, 0, reset_$>>)
      else
        @deny
        answers[filled] = pack_struct('<dddd<<dddd>>', 0, 0, 0, 0<<, cause_$, left_$, retry_$, reset_$>>)
      end
    end
    if changed then
      local written, refusal
      @write
      if refusal then
        for number = before + 1, filled do
          answers[number], reply[#reply + 1] = pack_struct('<d', -1), refusal
        end
      end
    end
    key_at, done = key_at + count, done + 1
  end
  if done < decisions then
    position, skip = head, done
    break
  end
  groups, position = groups - 1, costs[decisions * each + 1]
end
if groups == 0 then
  reply[1] = table.concat(answers)
  return reply
end
