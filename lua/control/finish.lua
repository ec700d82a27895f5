-- Runs the call. An error of a key is the reply.

local function run()
  if c.now < 0 then
    local time = ask('TIME')
    c.now = time[1] * 1000000 + time[2]
  end
  return answer()
end

local ran, result = pcall(run)
if ran or type(result) == 'table' then return result end
return redis.error_reply(result)
