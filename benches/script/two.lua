-- GCRA and a fixed window in one step, as they are usually written. ARGV: of the one, of the other.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local span, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local tolerance, reset = interval * burst, span - now % span
local window = KEYS[2] .. ':' .. string.format('%.0f', math.floor(now / span))
local used = tonumber(redis.call('GET', window) or 0)
if tat - now > tolerance or used + 1 > limit then
  return { 0, 0, math.max(tat - now - tolerance, 0), tat - now, limit - used, reset, reset }
end
tat = tat + interval
redis.call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1)
used = redis.call('INCR', window)
if used == 1 then redis.call('PEXPIRE', window, math.ceil(span / 1000)) end
return { 1, math.floor((tolerance - (tat - now)) / interval) + 1, 0, tat - now, limit - used, 0, reset }
