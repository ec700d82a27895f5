-- Adds items to a stream.

local function add_function()
  local next_id, add_entry = entry_functions()
  local items = KEYS[1]
  return function(payload)
    local ms, seq = next_id(q.last_ms, q.last_seq)
    q.last_ms, q.last_seq = add_entry(items, ms, seq, 'p', payload)
  end
end
