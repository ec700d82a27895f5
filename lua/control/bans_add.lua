-- Adds bans. Twin: BanState::add.
--
-- ARGV[2]  the id of the change, and then members and ends in µs, in turn
--
-- The number of the reply is how many were new or longer. What cannot be undone comes after commands of the same right
-- that change nothing.

local function answer()
  local scored, changed, newest = {}, {}, {}
  ask('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(c.now))
  for i = 3, #ARGV, 2 do
    local member, ends = ARGV[i], tonumber(ARGV[i + 1])
    if ends > c.now and ends > (newest[member] or end_of(member)) then
      newest[member] = ends
      changed[#changed + 1], changed[#changed + 2] = member, ARGV[i + 1]
      scored[#scored + 1], scored[#scored + 2] = ARGV[i + 1], member
    end
  end
  if #changed == 0 then return reply_of(WRITTEN, 0, store_position(), {}) end
  local beyond = text(-1 - c.most_entries)
  ask('ZREMRANGEBYRANK', KEYS[1], 0, beyond)
  ask('ZADD', KEYS[1], 'XX', 0, '')
  local position = announce(ARGV[2], changed)
  ask('ZADD', KEYS[1], unpack(scored))
  ask('ZREMRANGEBYRANK', KEYS[1], 0, beyond)
  return reply_of(WRITTEN, #changed / 2, position, {})
end
