-- What is remembered of a decision that is made once, under an id. Twin: crates/core/src/algorithm/once.rs.
--
-- Stored, in doubles: cost, granted, fitted, start, wait, until; then level, at, and the limit's numbers: limit, weight,
-- p1, p2. These six are 0 but of a reservation. Of a forced debit they are what it charged to each limit, and eight where
-- it has more than six limits. Of a cancelled reservation `until` is 0, so that its id is free, and `start` is when the
-- record ends.

-- What the reason of a refusal begins with; the known cost follows.
local OTHER_COST = 'other cost: '

local RECORD_LASTS, DEBIT_LASTS = 60000000, 86400000000

-- The record of an id that counts now: nil if there is none, false and why if something else is there. Of a reservation
-- that was cancelled: nil and true.
local function record_read(key, now)
  local raw = call('GET', key)
  if not raw then return nil end
  if type(raw) == 'table' or #raw ~= 96 and #raw ~= 112 then return false, unreadable(raw) end
  local record = {}
  record.cost, record.granted, record.fitted, record.start, record.wait, record.ends = unpack_struct('<dddddd', raw)
  local rest = { unpack_struct(#raw == 96 and '<dddddd' or '<dddddddd', raw, 49) }
  rest[#rest] = nil -- where the next number would be
  for _, numbers in pairs({ record, rest }) do
    for _, number in pairs(numbers) do
      if not exact(number) then return false, NOT_A_STATE end
    end
  end
  if record.ends == 0 then return nil, now < record.start end
  if now >= record.ends then return nil end
  record.level, record.at, record.limit, record.weight, record.p1, record.p2 = unpack(rest)
  record.charged = rest
  return record
end

-- `lasts` is until when it is kept.
local function record_write(key, record, lasts)
  local raw = pack_struct('<dddddd', record.cost, record.granted, record.fitted, record.start, record.wait, record.ends)
  local rest = record.charged or { record.level, record.at, record.limit, record.weight, record.p1, record.p2 }
  raw = raw .. pack_struct(#rest == 6 and '<dddddd' or '<dddddddd', unpack(rest))
  return call('SET', key, raw, SET_EXPIRY, span_of(ceil_div(lasts, 1000) + 1))
end

-- Frees the id of a reservation, and remembers until the record's end that it was cancelled.
local function record_cancel(key, record)
  local lasts = record.ends
  record.ends, record.start, record.charged = 0, lasts, nil
  return record_write(key, record, lasts)
end

-- How long the call still has to wait: no longer than at first, also after a step back of the clock.
local function record_wait(record, now)
  return min(max(record.start - now, 0), record.wait)
end

-- Of the numbers of a limit those that a record has: of a bucket, p2 says only of what kind it is. `kind` is the limit's
-- engine; other reservations than those of buckets and intervals give nothing back by their level.
local function record_numbers(limit, kind)
  if kind == BUCKET then return limit.limit, limit.weight, limit.p1, 0 end
  if kind == INTERVAL then return limit.limit, limit.weight, limit.p1, limit.p2 end
  return limit.limit, limit.weight, 0, 0
end

-- The level after a reservation is cancelled, or nil if that changes nothing.
local function record_cancelled(limit, one, record)
  local is_bucket = limit.engine == BUCKET
  local own, weight, p1, p2 = record_numbers(limit, limit.engine)
  if own ~= record.limit or weight ~= record.weight or p1 ~= record.p1 or p2 ~= record.p2 then return nil end
  local drained
  if is_bucket then drained = max(one.at - record.at, 0) * p1
  else drained = ceil_div(max(one.origin - record.at, 0), p2) * p1 end
  local later = max(one.level - max(record.level - drained, 0), 0)
  local restored = record.cost * weight - later
  if restored <= 0 or one.level == 0 then return nil end
  return max(one.level - restored, 0)
end
