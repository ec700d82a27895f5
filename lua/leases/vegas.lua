-- Vegas. Twin: crates/leases/src/model/vegas.rs. p1 is `smoothing`, p2 and p3 are alpha and beta or -1. p4 says when
-- to probe: 0 never, n > 0 after n samples per permit, -n after n samples. The memory is the shortest round trip,
-- the samples since it was measured, and the random part until the next time, times the limit when it was measured.

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
  local queue = math.ceil(limit * (1 - l.m1 / time))
  local alpha, beta = l.p2, l.p3
  if alpha < 0 then alpha = 3 * digits end
  if beta < 0 then beta = 6 * digits end
  if queue <= digits then return limit + beta end
  if queue < alpha then return limit + digits end
  if queue > beta then return limit - digits end
  return nil
end

local function next_limit(limit, time, in_flight, dropped)
  if l.m3 == 0 then l.m3 = l.jitter * limit end
  l.m2 = l.m2 + 1
  local due = false
  if l.p4 > 0 then due = l.m2 >= l.m3 * l.p4 elseif l.p4 < 0 then due = l.m2 >= -l.p4 end
  if due then
    l.m1, l.m2, l.m3 = time, 0, l.jitter * limit
    return limit
  end
  if l.m1 == 0 or time < l.m1 then
    l.m1 = time
    return limit
  end
  local next = step(limit, time, in_flight, dropped)
  if not next then return limit end
  return (1 - l.p1) * limit + l.p1 * within(next)
end
