-- When an item is delivered again, if a worker has it or gave it back. ZSCORE would be a right more, and this changes nothing.
-- It is asked for after a write that needs no memory, so that a server without any answers.
local function score_of(due, member)
  local score = ask('ZADD', due, 'XX', 'INCR', '0', member)
  return score and tonumber(score)
end
