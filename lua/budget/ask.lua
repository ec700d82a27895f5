-- A question: a charge, a peek or a hold. Twin: crates/core/src/algorithm/budget/ask.rs.

do
  local HOLD, OTHER_CONTENTS, TOO_MANY_ENDS = 15, 3, 4

  -- Grants each cost, and judges limits in shadow mode with it.
  local function grant(limits, count, ones)
    local granted = {}
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      if limit.name > 0 and not limit.shadow and one.least >= 0 then
        granted[limit.name] = min(granted[limit.name] or one.cost, standing.remaining(limit, one))
      end
    end
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      local units = granted[limit.name] or one.cost
      if limit.shadow and standing.is_judged(limit, units) then standing.judge(limit, keys[key_at + i], one, units) end
      if one.cause == FITS then one.granted = units end
    end
  end

  -- The next level of a limit that is charged.
  local function charge_one(limit, one, allowed)
    if allowed and not one.granted or not standing.is_judged(limit, one.cost) then return end
    one.level_after = next_level(limit, one, CHARGE, allowed, one.cost, one.granted or 0)
  end

  -- Remembers a charge under its id. A limit has one more than it granted, and 0 if it granted nothing.
  local function remember_charge(ones, asked, key, place)
    local granted = {}
    for i = 1, 8 do granted[i] = ones[i] and i <= asked.count and ones[i].granted and ones[i].granted + 1 or 0 end
    local record = { cost = asked.digest, granted = 0, fitted = 1, start = now, wait = 0, charged = granted,
      ends = now + place + RECORD_LASTS }
    budget.remember(ones, key, false)
    return record_write(key, record, record.ends)
  end

  -- Holds what is granted. Returns the end and the packed record, or nil if there are too many ends.
  local function hold(limits, count, ones, asked)
    local at, fits = ones.now, true
    local hold_end = standing.round_up(at + asked.hold_for, asked.grain)
    local entries = {}
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      if not limit.parts_at then charge_one(limit, one, true) end
      if limit.name >= 0 then
        local units = one.granted or 0
        local kept, open, ends, mark = units, 0, hold_end, 0
        if limit.parts_at then
          kept, open = 0, units
          ends = standing.part_end(limit, keys[key_at + i], one, at, asked.grain, hold_end)
          if units > 0 then
            if #one.ends == 0 then one.mark = asked.mark end
            parts.add(one, ends, units)
            fits = fits and #one.ends <= 2 * parts.most
          end
          mark = one.mark
        end
        entries[#entries + 1] = pack_struct('<dddddd', one.digest, one.granted or -1, kept, open, ends, mark)
      end
    end
    if not fits then return nil end
    return hold_end, hold_record.pack(1, hold_end, hold_end + asked.known_for, asked.digest, 0, 0, entries)
  end

  -- Answers a question whose id is known: nil if it is not, and why it cannot be read. `granted` of each limit is set.
  local function known_question(limits, count, ones, op, asked, key)
    local held_for = -1
    if op == HOLD then
      local record, why = hold_record.read(key, ones.now)
      if not record then return nil, why end
      if record.is_settled or hold_record.has_ended(record, ones.now) or record.question ~= asked.digest then
        return pack_struct('<d', OTHER_CONTENTS)
      end
      held_for = max(record.ends - now, 0)
      for i = 1, count do
        local entry = hold_record.entry(record, ones[i].digest)
        if limits[i].name < 0 then ones[i].granted = ones[i].cost
        elseif entry and record[entry + 1] >= 0 then ones[i].granted = record[entry + 1] end
      end
    elseif op == CHARGE_ONCE then
      local record, why = record_read(key, now)
      if not record then return nil, record == false and why end
      if #record.charged ~= 8 or record.cost ~= asked.digest then return pack_struct('<d', OTHER_CONTENTS) end
      for i = 1, count do
        if record.charged[i] > 0 then ones[i].granted = record.charged[i] - 1 end
      end
    else return nil end
    return pack_struct('<dddddd', 1, 1, 0, 0, held_for, 0)
  end

  -- Decides a question. Returns the head of the answer, or nil and why it could not be decided.
  local function ask(limits, count, ones, op, asked, key)
    for i = 1, count do ones[i].cost = ones[i].asked end
    local known, why = known_question(limits, count, ones, op, asked, key)
    if known or why then return known, why end
    local allowed, fitted, place, held_for = true, true, 0, -1
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      if standing.is_judged(limit, one.cost) then
        standing.judge(limit, keys[key_at + i], one, one.least >= 0 and one.least or one.cost)
      end
      if not limit.shadow then
        allowed, place = allowed and one.cause == FITS, max(place, pace(limit, one))
      end
    end
    if allowed then grant(limits, count, ones) else place = 0 end
    for i = 1, count do fitted = fitted and ones[i].cause == FITS end
    local reply
    if op == HOLD and allowed then
      local hold_end, record = hold(limits, count, ones, asked)
      if not hold_end then return pack_struct('<d', TOO_MANY_ENDS) end
      held_for = max(hold_end - now, 0)
      reply = budget.store(ones, key, record, hold_end + asked.known_for, false)
    elseif op ~= PEEK then
      for i = 1, count do charge_one(limits[i], ones[i], allowed) end
      if op == CHARGE_ONCE and allowed then reply = remember_charge(ones, asked, key, place) end
    end
    why = refused(reply) and reply.err or budget.write(limits, count, ones, op)
    if why then return nil, why end
    local applied = allowed and op ~= PEEK
    return pack_struct('<dddddd', allowed and 1 or 0, fitted and 1 or 0, applied and 1 or 0, place, held_for, 0)
  end

  budget[CHARGE], budget[CHARGE_ONCE], budget[PEEK], budget[HOLD] = ask, ask, ask, ask
end
