-- All leases of a call, one after the other. An error of a key is the answer to its lease alone.

if not by_caller then
  local time = redis.pcall('TIME')
  if time.err then return time end
  now = time[1] * 1000000 + time[2]
end
local replies, reasons = {}, {}
for number = 1, leases do
  local ran, reply = pcall(answer, number)
  if not ran and l.saving then
    -- As it was. The expiry may be later, and a lease may last longer.
    local saved = { 's', l.stored or '' }
    if l.removed then saved[3], saved[4] = 'i' .. l.id, l.record end
    for name, held in pairs(l.changed_partitions) do
      saved[#saved + 1], saved[#saved + 2] = 'p' .. name, struct.pack('<d', held)
    end
    if l.stored_memory then saved[#saved + 1], saved[#saved + 2] = 'c', l.stored_memory end
    for i = 1, l.gone do
      if i == l.gone_own then l.gone_names[i] = 'i' .. l.id end
      if l.gone_records[i] then redis.pcall('HSET', l.records, l.gone_names[i], l.gone_records[i]) end
    end
    local undone = l.new_record and not (l.gone_own and l.gone_records[l.gone_own])
    undone = undone and redis.pcall('HDEL', l.records, 'i' .. l.id)
    if type(undone) == 'table' and undone.err then
      saved[#saved + 1], saved[#saved + 2] = 'i' .. l.id, struct.pack('<ddd', -1, 0, now)
    end
    undone = l.stored or redis.pcall('DEL', l.records, l.ends)
    if not l.stored and type(undone) == 'table' then saved[2] = struct.pack('<dddddd', 0, 0, 0, 0, 0, 0) end
    if saved[2] ~= '' then redis.pcall('HSET', l.records, unpack(saved)) end
  end
  if not ran then
    if type(reply) ~= 'table' then reply = redis.error_reply(reply) end
    if leases == 1 then return reply end
    reasons[#reasons + 1] = reply.err
    reply = struct.pack('<ddddddd', 0, 0, 0, 0, 0, 0, 0)
  end
  replies[number] = reply
end
if #reasons == 0 then return table.concat(replies) end
return { table.concat(replies), unpack(reasons) }
