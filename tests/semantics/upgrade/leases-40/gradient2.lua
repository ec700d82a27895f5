-- Gradient2. Twin: crates/core/src/lease/gradient2.rs. p1 is `smoothing`, p2 `queue`, p3 `long_window`, p4
-- `tolerance`. The memory is the number of samples, the sum of the first ones, and the long average.

local KIND, WARM_UP = 3, 10

local function next_limit(limit, time, in_flight)
  if m1 < WARM_UP then
    m1, m2 = m1 + 1, m2 + time
    m3 = m2 / m1
  else
    local factor = 2 / (p3 + 1)
    m3 = m3 * (1 - factor) + time * factor
  end
  local long = m3
  if long / time > 2 then m3 = long * 0.95 end
  if in_flight < limit / 2 then return limit end
  local gradient = max(0.5, min(1, p4 * long / time))
  local next = limit * gradient + p2
  return within(limit * (1 - p1) + next * p1)
end
