-- All leases of a call, one after the other. An error of a key is the answer to its lease alone.

if not by_caller then
  local time = redis.pcall('TIME')
  if time.err then return time end
  now = time[1] * 1000000 + time[2]
end
local replies, reasons = {}, {}
for number = 1, leases do
  local ran, reply = pcall(answer, number)
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
