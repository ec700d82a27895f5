-- Samples for the controller, which `next_limit` is; one by one, or some of a time together. Twin:
-- crates/leases/src/model/sampling.rs.

-- Reads what this kind of controller has written.
local function recall(raw)
  local _
  l.has_memory = true
  _, l.estimate, l.m1, l.m2, l.m3, l.began, l.samples, l.rtt_sum, l.max_in_flight, l.any_dropped =
    struct.unpack('<dddddddddd', raw)
end

local function memory()
  return struct.pack('<dddddddddd', KIND, l.estimate, l.m1, l.m2, l.m3, l.began, l.samples, l.rtt_sum, l.max_in_flight,
    l.any_dropped)
end

local function forget_memory()
  l.has_memory, l.estimate, l.m1, l.m2, l.m3 = false, l.initial, 0, 0, 0
  l.began, l.samples, l.rtt_sum, l.max_in_flight, l.any_dropped = 0, 0, 0, 0, 0
end

local function take_sample(time, in_flight, dropped)
  local SHORTEST_RTT = 100
  l.has_memory = true
  if l.window_span > 0 then
    if time < SHORTEST_RTT then return end
    if l.samples == 0 or l.now < l.began then l.began = l.now end
    l.samples, l.rtt_sum, l.max_in_flight = l.samples + 1, l.rtt_sum + time, math.max(l.max_in_flight, in_flight)
    if dropped then l.any_dropped = 1 end
    if l.now - l.began < l.window_span or l.samples < l.window_samples then return end
    time, in_flight, dropped = l.rtt_sum / l.samples, l.max_in_flight, l.any_dropped == 1
    l.began, l.samples, l.rtt_sum, l.max_in_flight, l.any_dropped = 0, 0, 0, 0, 0
  end
  l.estimate = next_limit(within(l.estimate), time, in_flight, dropped)
end
