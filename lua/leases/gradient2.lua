-- Gradient2. Twin: crates/leases/src/model/gradient2.rs. p1 is `smoothing`, p2 `queue`, p3 `long_window`, p4
-- `tolerance`. The memory is the number of samples, the sum of the first ones, and the long average.

local KIND, WARM_UP = 3, 10

local function next_limit(limit, time, in_flight)
  if l.m1 < WARM_UP then
    l.m1, l.m2 = l.m1 + 1, l.m2 + time
    l.m3 = l.m2 / l.m1
  else
    local factor = 2 / (l.p3 + 1)
    l.m3 = l.m3 * (1 - factor) + time * factor
  end
  local long = l.m3
  if long / time > 2 then l.m3 = long * 0.95 end
  if in_flight < limit / 2 then return limit end
  local gradient = math.max(0.5, math.min(1, l.p4 * long / time))
  local next = limit * gradient + l.p2
  return within(limit * (1 - l.p1) + next * l.p1)
end
