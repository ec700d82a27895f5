-- Vegas. Twin: crates/core/src/lease/vegas.rs. p1 is `smoothing`, p2 and p3 are alpha and beta or -1. p4 says when
-- to probe: 0 never, n > 0 after n samples per permit, -n after n samples. The memory is the shortest round trip,
-- the samples since it was measured, and the random part until the next time.

local KIND = 2

-- max(1, floor(log10 limit)), by comparison.
local function digits_of(limit)
  local digits, next = 1, 100
  while limit >= next do digits, next = digits + 1, next * 10 end
  return digits
end

local function step(limit, time, in_flight, dropped)
  local digits = digits_of(limit)
  if dropped then return limit - digits end
  if in_flight * 2 < limit then return nil end
  local queue = ceil(limit * (1 - m1 / time))
  local alpha, beta = p2, p3
  if alpha < 0 then alpha = 3 * digits end
  if beta < 0 then beta = 6 * digits end
  if queue <= digits then return limit + beta end
  if queue < alpha then return limit + digits end
  if queue > beta then return limit - digits end
  return nil
end

local function next_limit(limit, time, in_flight, dropped)
  if m3 == 0 then m3 = jitter end
  m2 = m2 + 1
  local due = false
  if p4 > 0 then due = m2 >= m3 * p4 * limit elseif p4 < 0 then due = m2 >= -p4 end
  if due then
    m1, m2, m3 = time, 0, jitter
    return limit
  end
  if m1 == 0 or time < m1 then
    m1 = time
    return limit
  end
  local next = step(limit, time, in_flight, dropped)
  if not next then return limit end
  return (1 - p1) * limit + p1 * within(next)
end
