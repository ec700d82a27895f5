-- A sliding window of two counters as it is usually written. ARGV: µs, limit.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local span, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local window, elapsed = math.floor(now / span), now % span
local this = KEYS[1] .. ':' .. string.format('%.0f', window)
local before = tonumber(redis.call('GET', KEYS[1] .. ':' .. string.format('%.0f', window - 1)) or 0)
local used = tonumber(redis.call('GET', this) or 0)
local level = used + math.ceil(before * (span - elapsed) / span)
if level + 1 > limit then return { 0, limit - level, span - elapsed, span - elapsed } end
used = redis.call('INCR', this)
if used == 1 then redis.call('PEXPIRE', this, math.ceil(2 * span / 1000)) end
return { 1, limit - level - 1, 0, 2 * span - elapsed }
