-- Adds items to a list.

local function add_function()
  local next_id = entry_functions()
  return function(payload)
    q.last_ms, q.last_seq = next_id(q.last_ms, q.last_seq)
    ask('RPUSH', KEYS[1], struct.pack('<dd', q.last_ms, q.last_seq) .. payload)
  end
end
