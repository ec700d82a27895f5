-- The leanest script of the same contract: buckets of several keys in one call, each charged if it has room, with one
-- TIME. It checks nothing. ARGV: µs a token, tokens that may be taken at once besides. Answers with µs until each is full.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = tonumber(ARGV[1])
local tolerance, out = interval * ARGV[2], {}
for at = 1, #KEYS do
  local state = redis.call('GET', KEYS[at])
  local full = state and struct.unpack('<d', state) or now
  if full < now then full = now end
  if full - now <= tolerance then
    full = full + interval
    redis.call('SET', KEYS[at], struct.pack('<d', full), 'PX', (full - now - (full - now) % 1000) / 1000 + 2)
  end
  out[at] = full - now
end
return out
