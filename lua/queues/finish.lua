-- Runs the calls between the reading and the writing of the queue's numbers. An error of a key is the reply.

local function run()
  local FORMAT, meta = '<dddddddddddddddd', KEYS[3]
  if not q.by_caller then
    local time = ask('TIME')
    q.now = time[1] * 1000000 + time[2]
  end
  local read = ask('HMGET', meta, 's', unpack(fields))
  local numbers = read[1]
  if numbers then
    -- Older versions write 13.
    if #numbers < 128 then numbers = numbers:sub(1, 104) .. struct.pack('<ddd', 0, 0, 0) end
    q.last_ms, q.last_seq, q.bytes, q.level, q.level_at, q.accepted, q.first, q.nacked, q.expired, q.acked, q.buried,
      q.outcome_ms, q.outcome_seq, q.latest, q.late_from, q.late_step = struct.unpack(FORMAT, numbers)
  end
  local reply = answer(read)
  if not q.changed then return reply end
  numbers = struct.pack(FORMAT, q.last_ms, q.last_seq, q.bytes, q.level, q.level_at, q.accepted, q.first, q.nacked,
    q.expired, q.acked, q.buried, q.outcome_ms, q.outcome_seq, math.max(q.latest, q.now), q.late_from, q.late_step)
  local why
  if q.written then why = redis.pcall('HSET', meta, 's', numbers, unpack(q.written))
  else why = redis.pcall('HSET', meta, 's', numbers) end
  if type(why) ~= 'table' then
    why = nil
    if q.add then
      for i = 1, #q.new, 3 do
        why = q.add(ARGV[q.new[i]], q.new[i + 1], q.new[i + 2])
        if type(why) == 'table' then break end
        q.committed, why = true, nil
      end
      if q.drop and not why then q.drop() end
    elseif q.commit then
      local done
      done, why = pcall(q.commit)
      if done then why = nil end
    end
    if not why then return reply end
    if not q.committed then
      redis.pcall('HSET', meta, 's', read[1] or string.rep('\0', 104), unpack(q.before or {}))
    end
  end
  if q.undo and not q.committed then q.undo() end
  if q.hands_out then
    -- Nobody gets what was to be handed out, so that it is due at once.
    for i = 1, #q.written, 2 do
      redis.pcall('ZADD', KEYS[2], 'XX', string.format('%.0f', q.now), q.written[i]:sub(2))
    end
  end
  error(why, 0)
end

local ran, result = pcall(run)
if ran or type(result) == 'table' then return result end
return redis.error_reply(result)
