-- The settlement of a hold: the estimate is replaced by the real use, once. Twin:
-- crates/core/src/algorithm/budget/settle.rs.

do
  local SETTLE, OTHER_CONTENTS = 16, 3
  local SETTLED, LATE, UNKNOWN = 1, 2, 3 -- outcomes

  -- Takes the part of a limit out, if it is open, and charges what is used above what is charged already. `entry` is its place
  -- in the record.
  local function settle_one(limit, one, entry, record, at)
    local units, kept = one.asked, 0
    if entry then
      local granted, open, ends, mark = record[entry + 1], record[entry + 3], record[entry + 4], record[entry + 5]
      if granted < 0 then return end -- in shadow mode, and not admitted
      one.granted, kept = granted, record[entry + 2]
      if open > 0 and ends > at then
        if mark == one.mark and limit.parts_at then parts.take(one, ends, open) end
      elseif open > 0 and ends < record.ends then kept = kept + open end
    end
    if units < 0 then units = one.granted or 0 end
    one.cost = units
    standing.charge_forced(limit, one, max(units - kept, 0))
  end

  -- Answers as the first settlement was answered.
  local function settled_before(count, ones, record)
    for i = 1, count do
      local one, entry = ones[i], hold_record.entry(record, ones[i].digest)
      if entry and record[entry + 1] >= 0 then one.granted, one.charged = record[entry + 1], record[entry + 3] end
    end
    return pack_struct('<dddddd', 1, 1, 0, 0, -1, record.outcome)
  end

  -- Settles the hold of an id, or charges the use in full where there is none. Returns as `ask` does.
  local function settle(limits, count, ones, op, asked, key)
    local at = ones.now
    local record, why = hold_record.read(key, at)
    if record == false then return nil, why end
    if record and record.is_settled then
      if record.settlement ~= asked.digest then return pack_struct('<d', OTHER_CONTENTS) end
      return settled_before(count, ones, record)
    end
    local outcome, entries = UNKNOWN, {}
    if record then outcome = hold_record.has_ended(record, at) and LATE or SETTLED end
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      if limit.name >= 0 then
        local entry = hold_record.entry(record, one.digest)
        settle_one(limit, one, entry, record, at)
        -- Without an entry nobody was granted what is charged.
        local granted = entry and (one.granted or -1) or 0
        entries[#entries + 1] = pack_struct('<dddddd', one.digest, granted, 0, one.charged or 0, 0, 0)
      end
    end
    local ends, known_until = record and record.ends or at, at + asked.known_for
    local raw = hold_record.pack(2, ends, known_until, record and record.question or -1, asked.digest, outcome, entries)
    local reply = budget.store(ones, key, raw, known_until, record and record.raw)
    why = refused(reply) and reply.err or budget.write(limits, count, ones, op)
    if why then return nil, why end
    return pack_struct('<dddddd', 1, 1, 1, 0, -1, outcome)
  end

  budget[SETTLE] = settle
end
