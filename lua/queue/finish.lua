-- Runs the call. An error of a key is the reply.

local ran, result = pcall(run)
if ran or type(result) == 'table' then return result end
return redis.error_reply(result)
