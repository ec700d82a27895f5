-- An id with leading zeros.
local function member_of(id)
  local dash, zeros = id:find('-', 1, true), '0000000000000000'
  return zeros:sub(dash) .. id:sub(1, dash) .. zeros:sub(#id - dash + 1) .. id:sub(dash + 1)
end
