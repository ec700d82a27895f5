-- Debits, refunds and resets of limits with costs of their own. Twin: crates/core/src/algorithm/budget/adjust.rs. Beside the
-- twin: the ids of debits and of refunds.

do
  local OTHER_CONTENTS = 3

  -- Charges the limits of the costs that are named, also above them. Returns whether it fitted.
  local function debit(limits, count, ones)
    local fitted = true
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      if one.asked >= 0 then
        one.cost = one.asked
        if standing.is_judged(limit, one.cost) then standing.judge(limit, keys[key_at + i], one, one.cost) end
        standing.charge_forced(limit, one, one.cost)
        fitted = fitted and one.cause == FITS
      end
    end
    return fitted
  end

  -- Gives units back to the limits that are asked: of what is used, never of what is held.
  local function refund(limits, count, ones)
    for i = 1, count do
      local units = ones[i].asked
      if units >= 0 then ones[i].level_after = next_level(limits[i], ones[i], REFUND, true, units, units) end
    end
  end

  -- Empties the limits that are asked, with what is held of them.
  local function reset(limits, count, ones)
    for i = 1, count do
      local limit, one = limits[i], ones[i]
      if one.asked >= 0 then
        one.forget, one.level_after = limit.hold, 0
        if limit.parts_at then one.ends, one.open, one.changed = {}, 0, true end
      end
    end
  end

  -- Whether a debit was made before: then each limit says what that charged, and nothing is written. Returns the head of the
  -- answer, or nil and why it cannot be read.
  local function known_debit(count, ones, asked, key, fitted)
    local record, why = record_read(key, now)
    if not record then return nil, record == false and why end
    if #record.charged ~= 8 or record.cost ~= asked.digest then return pack_struct('<d', OTHER_CONTENTS) end
    for i = 1, count do
      local charged = record.charged[i]
      ones[i].level_after, ones[i].charged, ones[i].uncharged = nil, charged > 0 and charged - 1 or nil, 0
    end
    return pack_struct('<dddddd', 1, fitted and 1 or 0, 0, 0, -1, 0)
  end

  -- Remembers a debit under its id. A limit has one more than it was charged, and 0 if the debit does not name it.
  local function remember_debit(ones, asked, key, fitted)
    local charged = {}
    for i = 1, 8 do charged[i] = ones[i] and i <= asked.count and ones[i].charged and ones[i].charged + 1 or 0 end
    local record = { cost = asked.digest, granted = 0, fitted = fitted and 1 or 0, start = now, wait = 0, charged = charged,
      ends = now + DEBIT_LASTS }
    budget.remember(ones, key, false)
    return record_write(key, record, record.ends)
  end

  -- Debits, refunds or resets, under an id once. Returns as `ask` does.
  local function adjust(limits, count, ones, op, asked, key)
    local fitted, reply = true, nil
    if op == REFUND_ONCE then
      op = REFUND
      local marker = call('GET', key)
      if refused(marker) then return nil, marker.err end
      if marker then return pack_struct('<dddddd', 1, 1, 0, 0, -1, 0) end
      budget.remember(ones, key, false)
      reply = call('SET', key, 1, 'PX', REFUND_ID_PX)
      if refused(reply) then return nil, reply.err end
    end
    if op == REFUND then refund(limits, count, ones)
    elseif op == RESET then reset(limits, count, ones)
    else fitted = debit(limits, count, ones) end
    if op == FORCE_ONCE then
      local known, why = known_debit(count, ones, asked, key, fitted)
      if known or why then return known, why end
      reply = remember_debit(ones, asked, key, fitted)
    end
    local why = refused(reply) and reply.err or budget.write(limits, count, ones, op)
    if why then return nil, why end
    return pack_struct('<dddddd', 1, fitted and 1 or 0, 1, 0, -1, 0)
  end

  budget[FORCE], budget[FORCE_ONCE], budget[REFUND], budget[REFUND_ONCE], budget[RESET] = adjust, adjust, adjust, adjust, adjust
end
