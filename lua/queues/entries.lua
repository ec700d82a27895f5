-- What makes entries of streams.
local function entry_functions()
  -- The numbers of an id or of a member.
  local function parts_of(text)
    local ms, seq = text:match('^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(seq)
  end

  -- The id that comes now, after the last one.
  local function next_id(ms, seq)
    local now_ms = math.floor(q.now / 1000)
    if now_ms > ms then return now_ms, 0 end
    return ms, seq + 1
  end

  -- Adds an entry under an id, and says under which. Where the numbers of the queue were lost and the stream was not, it
  -- chooses the id itself.
  local function add_entry(key, ms, seq, ...)
    local made = redis.pcall('XADD', key, string.format('%.0f-%.0f', ms, seq), ...)
    if type(made) == 'table' and made.err then
      if not made.err:find('equal or smaller', 1, true) then error(made) end
      made = ask('XADD', key, '*', ...)
      return parts_of(made)
    end
    return ms, seq
  end

  return next_id, add_entry, parts_of
end
