-- Runs the calls between the reading and the writing of the queue's numbers. An error of a key is the reply.

local function run()
  local FORMAT, meta = '<ddddddddddddd', KEYS[3]
  if not q.by_caller then
    local time = ask('TIME')
    q.now = time[1] * 1000000 + time[2]
  end
  local read = ask('HMGET', meta, 's', unpack(fields))
  if read[1] then
    q.last_ms, q.last_seq, q.bytes, q.level, q.level_at, q.accepted, q.first, q.nacked, q.expired, q.acked, q.buried,
      q.outcome_ms, q.outcome_seq = struct.unpack(FORMAT, read[1])
  end
  local reply = answer(read)
  if q.changed then
    local numbers = struct.pack(FORMAT, q.last_ms, q.last_seq, q.bytes, q.level, q.level_at, q.accepted, q.first,
      q.nacked, q.expired, q.acked, q.buried, q.outcome_ms, q.outcome_seq)
    ask('HSET', meta, 's', numbers, unpack(q.written or {}))
  end
  return reply
end

local ran, result = pcall(run)
if ran or type(result) == 'table' then return result end
return redis.error_reply(result)
