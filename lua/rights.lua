-- Which commands this user may not run, by trying them: Redis 6.2 has no other way to ask that a user of these rights has.
--
-- KEYS[1] is a key that nothing else uses, and that is absent. ARGV: commands, whose words are apart by a space; `@` is the
-- key, and `''` an empty word. The reply has the numbers of those that are refused for want of the right. An error of
-- another kind is none: a server that cannot write says so to those who write.

-- What these write could not be removed without DEL: they are named then, and not tried.
local WRITES = { HSET = true, RPUSH = true }

local missing, may_delete = {}, true
for number = 1, #ARGV do
  local words = {}
  for word in ARGV[number]:gmatch('%S+') do
    if word == '@' then word = KEYS[1] elseif word == "''" then word = '' end
    words[#words + 1] = word
  end
  local reply = { err = 'NOPERM' }
  if may_delete or not WRITES[words[1]] then reply = redis.pcall(unpack(words)) end
  local why = type(reply) == 'table' and reply.err or ''
  -- The words of Redis 6.2, 7 and 8, and of Valkey.
  if why:find('NOPERM', 1, true) or why:find('permission', 1, true) or why:find('t run this command', 1, true) then
    missing[#missing + 1] = number
    if words[1] == 'DEL' then may_delete = false end
  end
end
if may_delete then redis.pcall('DEL', KEYS[1]) end
return missing
