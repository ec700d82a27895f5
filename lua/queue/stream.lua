-- Items in a stream: a place is held until the item is acked.

local function depth()
  return ask('XLEN', ITEMS)
end

local function add(payload)
  local ms, seq = next_id(last_ms, last_seq)
  last_ms, last_seq = add_entry(ITEMS, ms, seq, 'p', payload)
end

local function oldest()
  local entry = ask('XRANGE', ITEMS, '-', '+', 'COUNT', 1)[1]
  return entry and parts_of(entry[1])
end
