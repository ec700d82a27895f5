-- Takes over records of a node that are newer. Twin: ControlState::merge.
--
-- ARGV[2]  the id of this change, and then keys and records, in turn
--
-- The number of the reply is how many were newer.

local function answer()
  local keys, records, taken, written = {}, {}, {}, {}
  for i = 3, #ARGV, 2 do
    keys[#keys + 1], records[#records + 1] = ARGV[i], ARGV[i + 1]
  end
  local read = read_records(unpack(keys))
  local count, greatest = count_of_records(), 0
  for i = 1, #keys do
    local key, own = keys[i], taken[keys[i]] or read[i + 1]
    local readable, version, high, low = pcall(header, own)
    local its_version, its_high, its_low, ends = header(records[i])
    local is_newer = readable and (not version or its_version > version
      or its_version == version and (its_high > high or its_high == high and its_low > low))
    -- What ended long ago replaces others, but is not added.
    local is_old = ends ~= 0 and ends + c.ended_kept <= c.now
    if is_newer and (own or count < c.most_records and not is_old) then
      if not own then count = count + 1 end
      taken[key] = records[i]
      written[#written + 1], written[#written + 2] = key, records[i]
      greatest = math.max(greatest, its_version)
    end
  end
  if #written == 0 then return reply_of(WRITTEN, 0, c.position, {}) end
  return reply_of(WRITTEN, #written / 2, commit(next_version(greatest), ARGV[2], written), {})
end
