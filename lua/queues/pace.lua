-- How fast items leave: a bucket of burst 1. What an item adds is the period, and `count` drains in each microsecond.
-- Twin: crates/queues/src/model/pace.rs.

-- How many items a call gets that asks for `most`, how long until the next one, and the level.
local function pace(most)
  local old, since = math.min(q.level, q.period), math.max(0, q.now - q.level_at)
  local drained = since >= math.ceil(old / q.count) and 0 or old - since * q.count
  local wait = math.ceil(drained / q.count)
  return wait == 0 and math.min(most, 1) or 0, wait, drained
end

-- What has drained is not written for its own sake, unless the clock has stepped back.
local function charge_pace(hands, drained)
  if not hands and q.now >= q.level_at then return end
  q.level, q.level_at, q.changed = hands and q.period or drained, q.now, true
end
