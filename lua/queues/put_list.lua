-- Adds items to a list.

-- What makes the id of an item, and what adds it.
local function put_functions()
  local next_id = entry_functions()
  return next_id, function(payload, ms, seq)
    return redis.pcall('RPUSH', KEYS[1], struct.pack('<dd', ms, seq) .. payload)
  end
end
