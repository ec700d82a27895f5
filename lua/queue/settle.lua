-- Acks items, or gives them back. Twin: crates/core/src/queue/settle.rs.
--
-- ARGV: the numbers, 'ack' or 'nack', the outcome, and the items as members.

local ITEMS_BEGIN = 3

local function keep_outcome(member, deliveries, taker)
  outcome_ms, outcome_seq = next_id(outcome_ms, outcome_seq)
  outcome_ms, outcome_seq = add_entry(OUTCOMES, outcome_ms, outcome_seq, 'i', member, 'n', whole(deliveries), 'c', taker,
    't', ARGV[3])
end

local function trim_outcomes()
  ask('XTRIM', OUTCOMES, 'MAXLEN', '=', whole(capacity * OUTCOMES_PER_PLACE))
  ask('XTRIM', OUTCOMES, 'MINID', '=', whole(floor(max(0, now - outcomes_for) / 1000)))
end

local function ack(member, raw)
  local size, deliveries = unpack_struct('<dd', raw)
  local id = id_of(parts_of(member))
  ask('XACK', ITEMS, GROUP, id)
  ask('XDEL', ITEMS, id)
  forget(member)
  bytes, acked = max(0, bytes - size), acked + 1
  if ARGV[3] ~= '' and outcomes_for > 0 then keep_outcome(member, deliveries, raw:sub(18)) end
end

local function nack(member, raw)
  local size, deliveries = unpack_struct('<dd', raw)
  if bury(member, size, deliveries) then return end
  ask('ZADD', DUE, whole(min(now + n, LATEST)), member)
  ask('HSET', META, 'i' .. member, raw:sub(1, 16) .. 'n' .. raw:sub(18))
end

local function run()
  read_meta()
  local does = ARGV[2] == 'ack' and ack or nack
  local done, any = {}, false
  for i = ITEMS_BEGIN + 1, #ARGV do
    local raw = ask('HGET', META, 'i' .. ARGV[i])
    done[#done + 1] = raw and '1' or '0'
    if raw then
      does(ARGV[i], raw)
      any = true
    end
  end
  if any then
    if does == ack and ARGV[3] ~= '' and outcomes_for > 0 then trim_outcomes() end
    write_meta()
    write_dead_meta()
  end
  return { pack('<ddd', now, depth(), dead_count), table.concat(done) }
end
