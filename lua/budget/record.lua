-- What is remembered of the id of a hold. Twin: crates/core/src/algorithm/hold_record.rs.
--
-- Stored, in doubles: state (1 open, 2 settled), end, until, digest of the question (-1 if the settlement came without one),
-- digest of the settlement, outcome (0 before), how many entries; then for each limit without a fixed cost the digest of its key,
-- granted (-1: nothing, in shadow mode), kept, open (after the settlement: charged), end, mark.

local hold_record = {}

-- The record, if it counts at `at`: nil if there is none, false and why if something else is there. Its numbers of entries
-- follow each other.
function hold_record.read(key, at)
  local raw = call('GET', key)
  if not raw then return nil end
  if type(raw) == 'table' or #raw < 56 or #raw > 440 or (#raw - 56) % 48 ~= 0 then return false, unreadable(raw) end
  local count = #raw / 8
  local record = { unpack_struct(parts.format(count), raw) }
  for i = 1, count do
    local number = record[i]
    -- As `exact` of one more, without its calls: some of them may be -1.
    if not (number >= -1 and number + 1 < 2 * CEILING and number % 1 == 0) then return false, NOT_A_STATE end
  end
  if count ~= 7 + 6 * record[7] then return false, NOT_A_STATE end
  record.raw, record.is_settled, record.ends, record.question = raw, record[1] == 2, record[2], record[4]
  record.settlement, record.outcome = record[5], record[6]
  if at < record[3] then return record end
  return nil
end

-- Where the entry of a limit's key begins; nil if there is none.
function hold_record.entry(record, digest)
  for i = 8, record and 7 + 6 * record[7] or 0, 6 do
    if record[i] == digest then return i end
  end
end

-- Whether the hold has ended.
function hold_record.has_ended(record, at)
  return at >= record.ends or record.ends - at > parts.most_ahead
end

-- The string to store. `entries` are packed.
function hold_record.pack(state, ends, known_until, question, settlement, outcome, entries)
  return pack_struct('<ddddddd', state, ends, known_until, question, settlement, outcome, #entries) .. table.concat(entries)
end
