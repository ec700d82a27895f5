-- What keeps the outcomes of items that have left. Twin: `push` in crates/queues/src/model/archive.rs.
--
-- An entry of the archive begins with the way in which the item left, as the name of a field that has the item. Then come `r`,
-- the record of the last delivery, `t`, the text of the Ack, and `s` or `h`, the digest or the head of the payload.
--
-- What is over the bound goes once it is `OVER` outcomes: a trim costs more than all else here. Calls that read trim exactly.

-- Chooses the ids of outcomes, and returns what keeps them; nothing where none are kept. Of each: the way, the item, the record,
-- the text, and the payload if it was read.
local function archive_function(left)
  if q.outcomes_for == 0 or #left == 0 then return nil end
  local now_ms, ids = math.floor(q.now / 1000), {}
  for i = 1, #left do
    if now_ms > q.outcome_ms then q.outcome_ms, q.outcome_seq = now_ms, 0 else q.outcome_seq = q.outcome_seq + 1 end
    ids[i] = string.format('%.0f-%.0f', q.outcome_ms, q.outcome_seq)
  end
  q.changed = true

  -- Adds the field with what is kept of the payload.
  local function add_payload(entry, item)
    local DIGEST, BYTES_KEPT, payload = 1, 256, item[5]
    local found = not payload and ask('XRANGE', KEYS[1], item[2], item[2])[1]
    payload = payload or found and found[2][2] or ''
    entry[9] = q.payload == DIGEST and 's' or 'h'
    entry[10] = q.payload == DIGEST and redis.sha1hex(payload) or payload:sub(1, BYTES_KEPT)
  end

  return function()
    local OVER, key = 32, KEYS[4]
    local length = ask('XLEN', key)
    for i = 1, #left do
      local item = left[i]
      local entry = { key, ids[i], item[1], item[2], 'r', item[3], 't', item[4] }
      if q.payload > 0 then add_payload(entry, item) end
      local added = redis.pcall('XADD', unpack(entry))
      if type(added) == 'table' and added.err then
        -- Where the numbers of the queue were lost, and the archive was not, it chooses the id itself.
        if not added.err:find('equal or smaller', 1, true) then error(added) end
        entry[2] = '*'
        ask('XADD', unpack(entry))
      end
      length = length + 1
      if length > q.outcomes_max + OVER then
        ask('XTRIM', key, 'MAXLEN', '=', string.format('%.0f', q.outcomes_max))
        length = q.outcomes_max
      end
    end
  end
end
