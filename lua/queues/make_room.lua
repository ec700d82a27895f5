-- How an Enqueue that finds no place makes one. Twin: `make_room` in crates/queues/src/model/enqueue.rs.

-- Makes room for so many items and bytes, and says how many items are in the queue then, how many aged out, and how many are
-- dropped. These go once the new ones are there.
function q.make_room(held, fresh, new_bytes)
  local function fits(dropped, size)
    return held - dropped + fresh <= q.capacity and q.bytes - size + new_bytes <= q.max_bytes
  end
  local aged = q.age_out()
  held = held - aged
  local dropped = 0
  if q.drops > 0 and not fits(0, 0) then
    local items, size = q.find_oldest(held + fresh - q.capacity, q.bytes + new_bytes - q.max_bytes)
    if items then
      dropped = type(items) == 'table' and #items or items
      q.drop = drop_function(items)
      held, q.bytes = held - dropped, math.max(0, q.bytes - size)
    end
  end
  if aged + dropped > 0 then
    q.written, q.changed = add_totals(ask('HGET', KEYS[3], 't'), aged, dropped, 0, 0), true
  end
  return held, aged, dropped
end
