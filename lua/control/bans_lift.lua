-- Lifts the ban of a member. Twin: BanState::lift.
--
-- ARGV[2]  the id of the change
-- ARGV[3]  the member
--
-- The number of the reply is 1 if there was a ban.

local function answer()
  if end_of(ARGV[3]) == 0 then return reply_of(WRITTEN, 0, store_position(), {}) end
  ask('ZREM', KEYS[1], '')
  local position = announce(ARGV[2], { ARGV[3], '0' })
  ask('ZREM', KEYS[1], ARGV[3])
  return reply_of(WRITTEN, 1, position, {})
end
