-- A fixed window as it is usually written. ARGV: µs, limit.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local span, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local reset = span - now % span
local key = KEYS[1] .. ':' .. string.format('%.0f', math.floor(now / span))
local used = tonumber(redis.call('GET', key) or 0)
if used + 1 > limit then return { 0, limit - used, reset, reset } end
used = redis.call('INCR', key)
if used == 1 then redis.call('PEXPIRE', key, math.ceil(span / 1000)) end
return { 1, limit - used, 0, reset }
