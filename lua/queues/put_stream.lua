-- Adds items to a stream.

-- What makes the id of an item, and what adds it. Where the numbers of the queue were lost, and the stream was not, it goes on
-- from its last item; if there is none, the stream may still know a later id than now, and makes it itself.
local function put_functions(held, knows_last)
  local next_id, add_entry, parts_of = entry_functions()
  if held > 0 and not knows_last then
    q.last_ms, q.last_seq = parts_of(ask('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][1])
  elseif not knows_last then
    -- It is refused where the numbers would be, and changes nothing.
    ask('HSET', KEYS[3], 's', string.rep('\0', 104))
    return next_id, nil, add_entry
  end
  return next_id, function(payload, ms, seq)
    return redis.pcall('XADD', KEYS[1], string.format('%.0f-%.0f', ms, seq), 'p', payload)
  end
end
