-- Totals that came later than the numbers of a queue: what aged out, was dropped, was purged, and came back from the dead
-- letters. They have a field of their own, because older versions write the numbers without them.

-- What is written of them when so many are added.
local function add_totals(raw, ...)
  local totals, more = { struct.unpack('<dddd', raw or string.rep('\0', 32)) }, { ... }
  for i = 1, 4 do totals[i] = totals[i] + more[i] end
  return { 't', struct.pack('<dddd', unpack(totals, 1, 4)) }
end
