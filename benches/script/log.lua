-- A sliding log in a sorted set, as it is usually written. ARGV: µs, limit.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local span, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - span)
local used = redis.call('ZCARD', KEYS[1])
if used + 1 > limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return { 0, limit - used, oldest[2] + span - now, span }
end
redis.call('ZADD', KEYS[1], now, string.format('%.0f-%d', now, used))
redis.call('PEXPIRE', KEYS[1], math.ceil(span / 1000))
return { 1, limit - used - 1, 0, span }
