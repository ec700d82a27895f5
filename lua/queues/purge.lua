-- Removes all items, also those that workers have. Twin: `purge` in crates/queues/src/model/operate.rs. Reply: the time, the
-- depth, and how many items there were.

local fields = { 't' }

local function answer(read)
  local held = ask(LENGTH, KEYS[1])
  if held > 0 then
    -- These change nothing, and are refused where the writing of the numbers would be. The first of them needs no memory.
    ask('ZREM', KEYS[2], '')
    ask('HSET', KEYS[3], 's', read[1] or string.rep('\0', 104))
    -- The records go with the numbers, which are written again.
    ask('DEL', KEYS[1], KEYS[2], KEYS[3])
    q.bytes, q.changed, q.committed = 0, true, true
    q.written = add_totals(read[2], 0, 0, held, 0)
  end
  return { struct.pack('<ddd', q.now, 0, held) }
end
