-- Writes a decision: the record of its id, then parts, then states; and takes all of it back where a command is refused. Twin:
-- write.rs in crates/core/src/algorithm/budget/.

-- Its functions, and of each operation the one that decides it. A chunk of Lua has 200 names of its own at a time, and the engines
-- need most of those: so the files of this folder have few, and some end with a block.
local budget = {}

do
  -- Remembers what was under a key that is written now.
  function budget.remember(ones, key, before)
    local stored = ones.stored
    local count = #stored
    stored[count + 1], stored[count + 2] = key, before or false
  end

  -- Stores a string until a time, and remembers what was there.
  function budget.store(ones, key, raw, goes, before)
    budget.remember(ones, key, before)
    return call('SET', key, raw, SET_EXPIRY, span_of(ceil_div(goes, 1000) + 1))
  end

  -- Stores the open parts of a limit until the last end.
  local function store_parts(ones, one, key)
    if #one.ends > 0 then return budget.store(ones, key, parts.pack(one, ones.now), one.ends[#one.ends - 1], one.parts_raw) end
    if not one.parts_raw then return end
    budget.remember(ones, key, one.parts_raw)
    return call('DEL', key)
  end

  -- Writes parts and states. Returns why it cannot.
  function budget.write(limits, count, ones, op)
    for i = 1, count do
      local reply = ones[i].changed and store_parts(ones, ones[i], keys[key_at + limits[i].parts_at])
      if refused(reply) then return reply.err end
    end
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      if one.level_after then
        ones.written = i
        local reply = write(limit, keys[key_at + i], one, one.level_after)
        if refused(reply) then return reply.err end
        one.writes = true
      end
    end
    for i = 1, op == REFUND and count or 0 do
      local one = ones[i]
      local reply = one.level_after and limits[i].engine == LOG and log_drop(keys[key_at + i], one.held)
      if refused(reply) then return reply.err end
    end
  end

  -- When a stored string goes: parts by their last end, a record by its third number.
  local function goes_of(raw, is_record)
    local goes = unpack_struct('<d', raw, is_record and 17 or #raw - 15)
    return ceil_div(goes, 1000) + 1
  end

  -- Takes back what was written.
  function budget.undo(limits, ones, record_key)
    undo(limits, ones)
    for i = #ones.stored - 1, 1, -2 do
      local key, before = ones.stored[i], ones.stored[i + 1]
      if before then call('SET', key, before, SET_EXPIRY, span_of(goes_of(before, key == record_key)))
      elseif refused(call('DEL', key)) then call('SET', key, '', 'PXAT', 1) end
    end
  end
end
