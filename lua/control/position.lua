-- The position of records is kept with them.

local function store_position()
  local raw = ask('HGET', KEYS[1], '')
  if raw and #raw == 16 then return raw end
  return NONE
end
