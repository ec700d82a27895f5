-- What every call begins with: the request, the time, and the reply that is filled. README.md beside
-- this has the contract.

local call, pack_struct, unpack_struct = redis.pcall, struct.pack, struct.unpack
local request = ARGV[#ARGV]
local CHARGE, PEEK = 1, 2
local CEILING = 4503599627370496 -- 2^52

-- How long the key of a bucket may outlive its state, so that most writes need not move its expiry,
-- which costs as much as everything else that they do.
local GRACE_MS = 4000

-- Keys of several slots cannot be declared: they are arguments, before the request. Up to `key_at` are
-- those of the decisions that have been answered.
local keys, key_at, key_count = KEYS, 0, #KEYS
if key_count == 0 then keys, key_count = ARGV, #ARGV - 1 end

local now, groups, repeats, position = unpack_struct('<ddd', request)

-- How a write says when its key goes: at a time on the server's clock, the one that was decided by. A
-- span would count from the start of the call, which is earlier than the answer of TIME, so a
-- key could expire before its state is fresh. A caller's own clock says nothing of when, so that its keys
-- live for a span from its own now, and for at least a minute.
local SET_EXPIRY, KEY_EXPIRY, base_ms, least_ms = 'PXAT', 'PEXPIREAT', 0, 0
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
else
  SET_EXPIRY, KEY_EXPIRY, base_ms, least_ms = 'PX', 'PEXPIRE', (now - now % 1000) / 1000, 60000
end

-- The answers so far, and why decisions failed, if any did. How many decisions the short way has decided,
-- how many charges it admitted, and how many decisions were of the group to go on with.
local reply, reasons, short, admitted, skip = {}, false, 0, 0, 0
