-- Samples for the controller, which `next_limit` is; one by one, or some of a time together. Twin:
-- crates/core/src/lease/sampling.rs.

local SHORTEST_RTT = 100
local began, samples, rtt_sum, max_in_flight, any_dropped = 0, 0, 0, 0, 0

-- Reads what this kind of controller has written.
local function recall(raw)
  local _
  has_memory = true
  _, estimate, m1, m2, m3, began, samples, rtt_sum, max_in_flight, any_dropped =
    unpack_struct('<dddddddddd', raw)
end

local function memory()
  return pack_struct('<dddddddddd', KIND, estimate, m1, m2, m3, began, samples, rtt_sum, max_in_flight, any_dropped)
end

local function forget_memory()
  has_memory, estimate, m1, m2, m3 = false, initial, 0, 0, 0
  began, samples, rtt_sum, max_in_flight, any_dropped = 0, 0, 0, 0, 0
end

local function take_sample(time, in_flight, dropped)
  has_memory = true
  if window_span > 0 then
    if time < SHORTEST_RTT then return end
    if samples == 0 or now < began then began = now end
    samples, rtt_sum, max_in_flight = samples + 1, rtt_sum + time, max(max_in_flight, in_flight)
    if dropped then any_dropped = 1 end
    if now - began < window_span or samples < window_samples then return end
    time, in_flight, dropped = rtt_sum / samples, max_in_flight, any_dropped == 1
    began, samples, rtt_sum, max_in_flight, any_dropped = 0, 0, 0, 0, 0
  end
  estimate = next_limit(within(estimate), time, in_flight, dropped)
end
