-- Items in a list: a place is free as soon as the item is taken. An element is the id, as two doubles, and the payload.

local function depth()
  return ask('LLEN', ITEMS)
end

local function add(payload)
  last_ms, last_seq = next_id(last_ms, last_seq)
  ask('RPUSH', ITEMS, pack('<dd', last_ms, last_seq) .. payload)
end

local function oldest()
  local element = ask('LINDEX', ITEMS, 0)
  if not element then return nil end
  return (unpack_struct('<d', element))
end
