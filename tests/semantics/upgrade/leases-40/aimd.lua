-- AIMD. Twin: crates/core/src/lease/aimd.rs. p1 is `backoff`, p2 `timeout`.

local KIND = 1

local function next_limit(limit, time, in_flight, dropped)
  local next
  if dropped or time > p2 then next = floor(limit * p1)
  elseif in_flight * 2 >= limit then next = limit + 1
  else next = limit end
  return within(next)
end
