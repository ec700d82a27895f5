-- AIMD. Twin: crates/leases/src/model/aimd.rs. p1 is `backoff`, p2 `timeout`.

local KIND = 1

local function next_limit(limit, time, in_flight, dropped)
  local next
  if dropped or time > l.p2 then next = math.floor(limit * l.p1)
  elseif in_flight * 2 >= limit then next = limit + 1
  else next = limit end
  return within(next)
end
