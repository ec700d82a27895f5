-- Bucketed window of more than 361 parts that count. Twin: crates/core/src/algorithm/slots.rs, as slots.lua is, whose
-- functions this file uses. Only the layout differs: parts without hits take no bytes, and a charge reads and writes a few
-- bytes of the string, not all.
--
-- Stored: a head of nine doubles, and an entry for each part before the newest that was hit, in their order: its number since
-- `base` (4 bytes), and what was charged up to its end (7 bytes). Of the head: width, frame (as in slots.lua), base; how many
-- entries no longer count, what was charged up to the last of them, the number of the oldest part that counts, how many
-- entries there are; the number of the newest part, and what was charged up to its end.
--
-- So the level is one difference, and what a wait or a refund needs is found by halving. A string is written whole when more
-- than a twelfth of its entries no longer count: a charge of a new part appends an entry, and all others rewrite the head.
-- A reading has the numbers of the head in `held`, moved by the shift already.

-- The most parts of a window. Twin: MAX_BUCKETS of slots.rs.
local SPARSE_MOST = 3600
local SPARSE_HEAD, SPARSE_ENTRY, SPARSE_BLOCK = 72, 11, 8
-- What a search looks at: numbers of parts, or what was charged.
local SPARSE_PART, SPARSE_TOTAL = 1, 2
-- A number since `base` has four bytes.
local SPARSE_FAR = 4294967296

-- The entries from one index to before another, as a list { part, total, ... }, or nil and why there are none.
local function sparse_entries(key, from, to)
  local first = SPARSE_HEAD + SPARSE_ENTRY * from
  local raw = call('GETRANGE', key, first, SPARSE_HEAD + SPARSE_ENTRY * to - 1)
  if refused(raw) or #raw ~= SPARSE_ENTRY * (to - from) then return nil, unreadable(raw) end
  return { unpack_struct('<' .. string.rep('I4I7', to - from), raw) }
end

-- The first entry that counts whose number, or total, is at least `least`: its index, its part, and what was charged before
-- it. The newest part is behind all entries. Nil and why, if the string is no state.
local function sparse_find(key, held, which, least)
  local low, high, before, jump = held.dead, held.length, held.before, 0
  while low < held.length do
    local at = low
    if high - low > SPARSE_BLOCK then at = low + jump end
    local cells, why = sparse_entries(key, at, min(at + SPARSE_BLOCK, held.length))
    if not cells then return nil, why end
    local last = #cells - 2
    if at > low and cells[which] >= least then high = at
    elseif cells[last + which - 1] < least then low, before = at + (last + 1) / 2, cells[last + 1]
    else
      for i = 1, last, 2 do
        if cells[i + which - 1] >= least then
          return at + (i - 1) / 2, max(held.base + cells[i], 0), before
        end
        before = cells[i + 1]
      end
    end
    jump = floor((high - low) / 2)
  end
  return held.length, held.newest, before
end

local function sparse_read(key, now, p1, p2)
  local raw = call('GETRANGE', key, 0, SPARSE_HEAD - 1)
  if refused(raw) then return nil, unreadable(raw) end
  if raw == '' then return slots_opening(now, p1, p2) end
  if #raw ~= SPARSE_HEAD then return nil, NOT_A_STATE end
  local width, frame, base, dead, before, oldest, length, newest, total = unpack_struct('<ddddddddd', raw)
  if not (exact(width) and exact(frame) and exact(dead) and exact(before) and exact(oldest) and exact(length)
      and exact(newest) and exact(total)) or floor(base) ~= base or base > newest or base < -2 * CEILING or dead > length or before > total
      or total - before > CEILING or oldest > newest then
    return nil, NOT_A_STATE
  end
  local window, parts, count = slots_shape(width, frame)
  if not window or parts > SPARSE_MOST or slots_start(newest, width, window, parts) > 2 * CEILING then
    return nil, NOT_A_STATE
  end
  local at, origin, current, shift, span = slots_time(newest, now, width, frame)
  if not origin then return slots_opening(at, p1, p2) end
  local held = { width, frame, head = raw, base = base - shift, dead = dead, before = before,
    oldest = max(oldest - shift, 0), length = length, newest = newest - shift, total = total }
  if width == p1 and frame == p2 and held.oldest + count <= current then
    held.dead, held.oldest, held.before = sparse_find(key, held, SPARSE_PART, current - count + 1 - held.base)
    if not held.dead then return nil, held.oldest end
  end
  return total - held.before, at, origin, current, shift, span, held
end

local function sparse_wait(key, one, p1, p2, excess)
  local held = one.held
  if held.newest and held[1] == p1 and held[2] == p2 and excess < one.level then
    local found, part = sparse_find(key, held, SPARSE_TOTAL, held.before + excess)
    if found then return slots_left(one, part, p1, p2) end
  end
  return one.span - (one.at - one.origin)
end

-- What the newest `wanted` parts hold, the one that is now included. Nil and why, if the string is no state.
local function sparse_newest(key, one, p1, p2, wanted)
  local held = one.held
  local oldest, from = slots_oldest(one, p1, p2, wanted)
  if not held.newest then return 0 end
  if held[1] ~= p1 or held[2] ~= p2 then return slots_newest(one, p1, p2, wanted) end
  if held.newest < oldest then return 0 end
  if held.oldest >= oldest then return one.level end
  local found, why, before = sparse_find(key, held, SPARSE_PART, oldest - held.base)
  if not found then return nil, why end
  return held.total - before
end

-- Adds `cost` to the part that is now, or takes -cost out of the newest; in a state of other parts out of and into the only
-- one. Returns why it cannot.
local function sparse_change(key, one, cost, p1, p2)
  local held = one.held
  if not held.newest then
    held.fresh, held.base, held.dead, held.before, held.length, held.total = true, one.extra, 0, 0, 0, 0
    held.oldest, held.newest = one.extra, one.extra
  elseif held[1] ~= p1 or held[2] ~= p2 then
    held.fresh, held.base, held.dead, held.before, held.length = true, held.newest, 0, 0, 0
    held.total, held.oldest = one.level - cost, held.newest
  elseif cost > 0 and one.extra > held.newest then
    held.pushed = { held.newest - held.base, held.total }
    held.newest = one.extra
  elseif cost < 0 then
    local found, part = sparse_find(key, held, SPARSE_TOTAL, held.total + cost)
    if not found then return part end
    held.newest, held.cut = part, found < held.length
    held.length = found
  end
  held.total = held.total + cost
  slots_renew(one, held.newest, held[1], held[2])
end

local function sparse_head(held)
  return pack_struct('<ddddddddd', held[1], held[2], held.base, held.dead, held.before, held.oldest, held.length,
    held.newest, held.total)
end

-- Entries that count from a base and a total of their own: those of a string whose numbers became too large.
local function sparse_renumbered(held, raw)
  local entries, moved, position = {}, held.oldest - held.base, 1
  for i = 1, #raw / SPARSE_ENTRY do
    local part, total
    part, total, position = unpack_struct('<I4I7', raw, position)
    entries[i] = pack_struct('<I4I7', part - moved, total - held.before)
  end
  held.base, held.total, held.before = held.oldest, held.total - held.before, 0
  return table.concat(entries)
end

-- Writes the string without the entries that no longer count.
local function sparse_write_whole(key, one, goes)
  local held = one.held
  local raw = held.head and call('GET', key) or ''
  if refused(raw) then return raw end
  if #raw > 0 then one.undo = { { 'SET', key, raw, 'KEEPTTL' } } else one.undo = { { 'DEL', key } } end
  local entries = raw:sub(SPARSE_HEAD + SPARSE_ENTRY * held.dead + 1, SPARSE_HEAD + SPARSE_ENTRY * held.length)
  if held.pushed then entries = entries .. pack_struct('<I4I7', held.pushed[1], held.pushed[2]) end
  if held.newest - held.base >= SPARSE_FAR or held.total > CEILING then entries = sparse_renumbered(held, entries) end
  held.dead, held.length = 0, #entries / SPARSE_ENTRY
  return call('SET', key, sparse_head(held) .. entries, SET_EXPIRY, span_of(goes))
end

local function sparse_write(key, one, goes)
  local held = one.held
  local length = held.length
  if held.pushed then length = length + 1 end
  if held.fresh or held.cut or one.shift > 0 or 12 * held.dead > length + 4 or held.newest - held.base >= SPARSE_FAR
      or held.total > CEILING and held.before > 0 then
    return sparse_write_whole(key, one, goes)
  end
  if held.pushed then
    local entry = pack_struct('<I4I7', held.pushed[1], held.pushed[2])
    local reply = call('SETRANGE', key, SPARSE_HEAD + SPARSE_ENTRY * held.length, entry)
    if refused(reply) then return reply end
    held.length = length
  end
  one.undo = { { 'SETRANGE', key, 0, held.head } }
  local reply = call('SETRANGE', key, 0, sparse_head(held))
  -- All charges of a part have one expiry.
  if refused(reply) or not held.pushed then return reply end
  return call(KEY_EXPIRY, key, span_of(goes))
end
