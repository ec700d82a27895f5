-- Bucketed window of more than 361 slots that count. Twin: crates/core/src/algorithm/slots.rs, as slots.lua is, whose
-- functions this file uses. Only the layout differs: a charge reads and writes a few parts of the string, not all.
--
-- Stored (doubles): width, count, number of the newest slot, what all slots held after the last write; then for each
-- group of 64 slots its number and what it holds; then the groups' slots. Slot n begins at n * width and is in group
-- floor(n / 64), which has place (group mod groups). There is one group more than the slots that count may touch, so
-- that two groups that count never have one place. A group whose number is another one holds nothing that counts.
--
-- A reading has the groups in `held`: { width, count, groups =, first =, cells =, ... }. A state that is not regular
-- (a clock that went back far, a changed limit, a refund) is read whole, into a list as slots.lua has it, and
-- written whole.

-- The most slots that count. Twin: MAX_BUCKETS of slots.rs, and the one that is now. A count above it was not written by
-- this file, and a string for it might be as large as all memory.
local RING_MOST = 3601
local RING_GROUP, RING_HEAD = 64, 32
local RING_CELLS = '<' .. string.rep('d', RING_GROUP)

local function ring_groups(count)
  return ceil_div(count, RING_GROUP) + 1
end

-- Where the slots of the group at a place begin.
local function ring_offset(groups, place)
  return RING_HEAD + 16 * groups + 8 * RING_GROUP * place
end

-- The slots of the group at a place, or nil and why there are none.
local function ring_cells(key, groups, place)
  local from = ring_offset(groups, place)
  local raw = call('GETRANGE', key, from, from + 8 * RING_GROUP - 1)
  if refused(raw) or #raw ~= 8 * RING_GROUP then return nil, unreadable(raw) end
  return { unpack_struct(RING_CELLS, raw) }
end

-- All slots of a regular string from slot `oldest` on, as a list { width, count, start1, hits1, ... }, or nil.
local function ring_list(key, width, count, oldest, newest)
  local groups, list = ring_groups(count), { width, count }
  local raw = call('GET', key)
  if refused(raw) or #raw ~= ring_offset(groups, groups) then return nil end
  for group = floor_div(max(oldest, 0), RING_GROUP), floor_div(newest, RING_GROUP) do
    local place = fmod(group, groups)
    if unpack_struct('<d', raw, RING_HEAD + 16 * place + 1) == group then
      local cells = { unpack_struct(RING_CELLS, raw, ring_offset(groups, place) + 1) }
      for i = 1, RING_GROUP do
        local slot, hits = group * RING_GROUP + i - 1, cells[i]
        if not exact(hits) then return nil end
        if hits > 0 and slot >= oldest and slot <= newest then
          list[#list + 1], list[#list + 2] = slot * width, hits
        end
      end
    end
  end
  return list
end

-- A state of another width or count counts whole; one far ahead of the clock is moved back.
local function ring_read_whole(key, now, p1, p2, width, count, newest, total)
  local span, start, shift = width * count, newest * width, 0
  if start - now > span then shift = start - (now - fmod(now, width)) end
  local origin = start - shift
  local at = max(now, origin)
  if at - origin >= span then return slots_opening(at, p1, p2) end
  if width ~= p1 or count ~= p2 then
    return total, at, origin, 0, shift, span, { width, count, origin, total }
  end
  local list = ring_list(key, width, count, newest - count + 1, newest)
  if not list then return nil, NOT_A_STATE end
  local level, held = 0, { width, count }
  for i = 3, #list, 2 do
    local from = max(list[i] - shift, 0)
    if at - from < span then
      level = level + list[i + 1]
      held[#held + 1], held[#held + 2] = from, list[i + 1]
    end
  end
  if level > CEILING then return nil, NOT_A_STATE end
  return level, at, origin, 0, shift, span, held
end

local function ring_read(key, now, p1, p2)
  local groups = ring_groups(p2)
  local raw = call('GETRANGE', key, 0, RING_HEAD + 16 * groups - 1)
  if refused(raw) then return nil, unreadable(raw) end
  if raw == '' then return slots_opening(now, p1, p2) end
  if #raw < RING_HEAD then return nil, NOT_A_STATE end
  local width, count, newest, total = unpack_struct('<dddd', raw)
  if not (exact(width) and exact(count) and exact(newest) and exact(total)) or width == 0 or count == 0
      or count > RING_MOST or width * count > 2 * CEILING or newest * width > 2 * CEILING or total > CEILING then
    return nil, NOT_A_STATE
  end
  local start, span = newest * width, p1 * p2
  if width ~= p1 or count ~= p2 or start - now > span then
    return ring_read_whole(key, now, p1, p2, width, count, newest, total)
  end
  local at = max(now, start)
  if at - start >= span then return slots_opening(at, p1, p2) end
  if #raw ~= RING_HEAD + 16 * groups then return nil, NOT_A_STATE end
  local first = max(floor_div(at, p1) - p2 + 1, 0)
  local group, last = floor_div(first, RING_GROUP), floor_div(newest, RING_GROUP)
  local held = { p1, p2, groups = groups, group = group, last = last, newest = newest, total = total }
  local records, level = { unpack_struct('<' .. string.rep('dd', groups), raw, RING_HEAD + 1) }, 0
  held.records, held.from = records, first - group * RING_GROUP + 1
  local at_record = 2 * fmod(group, groups) + 1
  if records[at_record] == group then
    local cells, why = ring_cells(key, groups, fmod(group, groups))
    if not cells then return nil, why end
    for i = held.from, RING_GROUP do level = level + cells[i] end
    held.cells = cells
  end
  for number = group + 1, last do
    at_record = at_record + 2
    if at_record > 2 * groups then at_record = 1 end
    if records[at_record] == number then level = level + records[at_record + 1]
    else records[at_record + 1] = 0 end
  end
  if not exact(level) or level > CEILING then return nil, NOT_A_STATE end
  return level, at, start, 0, 0, span, held
end

-- How long until the slot has gone with which `excess` have gone, of a group's slots; else what has gone.
local function ring_wait_in(one, group, cells, from, freed, excess)
  for i = from, RING_GROUP do
    freed = freed + cells[i]
    if cells[i] > 0 and freed >= excess then
      return freed, one.span - (one.at - (group * RING_GROUP + i - 1) * one.held[1])
    end
  end
  return freed
end

local function ring_wait(key, one, excess)
  local held, freed, wait = one.held, 0, nil
  if not held.groups then return slots_wait(one, excess) end
  local last = one.span - (one.at - one.origin)
  if excess >= one.level then return last end
  if held.cells then
    freed, wait = ring_wait_in(one, held.group, held.cells, held.from, freed, excess)
    if wait then return wait end
  end
  local place = fmod(held.group, held.groups)
  for number = held.group + 1, held.last do
    place = place + 1
    if place == held.groups then place = 0 end
    local holds = held.records[2 * place + 2]
    if holds > 0 and freed + holds >= excess then
      local cells = ring_cells(key, held.groups, place)
      if cells then freed, wait = ring_wait_in(one, number, cells, 1, freed, excess) end
      return wait or last
    end
    freed = freed + holds
  end
  return last
end

-- Makes of a reading with groups one with a list.
local function ring_make_list(key, one, p1, p2)
  local held = one.held
  if not held.groups then return end
  one.held = ring_list(key, p1, p2, held.group * RING_GROUP + held.from - 1, held.newest) or { p1, p2 }
end

-- Adds `cost` to the slot that is now, or takes -cost out of the newest.
local function ring_change(key, one, cost, p1, p2)
  local held = one.held
  if not held.groups then return slots_change(one, cost, p1, p2) end
  if cost > 0 then
    held.slot, held.cost = floor_div(one.at, p1), cost
    one.origin = held.slot * p1
    return
  end
  ring_make_list(key, one, p1, p2)
  slots_change(one, cost, p1, p2)
end

-- Writes the whole string from a list.
local function ring_write_list(key, one)
  local held, raw = one.held, call('GET', key) or ''
  if refused(raw) then return raw end
  local width, count = held[1], held[2]
  local groups, total = ring_groups(count), 0
  local reply
  if #raw > 0 then reply = call('SET', key, string.rep('\0', ring_offset(groups, groups)), 'KEEPTTL')
  else reply = call('SETRANGE', key, ring_offset(groups, groups) - 8, pack_struct('<d', 0)) end
  if refused(reply) then return reply end
  if #raw > 0 then one.undo = { { 'SET', key, raw, 'PX', whole(ceil_div(2 * width * count, 1000) + 1) } }
  else one.undo = { { 'DEL', key } } end
  local i = 3
  while i <= #held do
    local group, cells, holds = floor_div(held[i] / width, RING_GROUP), {}, 0
    for cell = 1, RING_GROUP do cells[cell] = 0 end
    while i <= #held and floor_div(held[i] / width, RING_GROUP) == group do
      local cell = held[i] / width - group * RING_GROUP + 1
      cells[cell], holds, i = cells[cell] + held[i + 1], holds + held[i + 1], i + 2
    end
    local place = fmod(group, groups)
    reply = call('SETRANGE', key, ring_offset(groups, place), pack_struct(RING_CELLS, unpack(cells)))
    if refused(reply) then return reply end
    call('SETRANGE', key, RING_HEAD + 16 * place, pack_struct('<dd', group, holds))
    total = total + holds
  end
  return call('SETRANGE', key, 0, pack_struct('<dddd', width, count, held[#held - 1] / width, total))
end

-- Writes the slot that is charged, its group, and the head.
local function ring_write_slot(key, one)
  local held = one.held
  local groups, group = held.groups, floor_div(held.slot, RING_GROUP)
  local place, cell = fmod(group, groups), held.slot - group * RING_GROUP
  local from, holds = ring_offset(groups, place), held.cost
  local reply, before
  if held.records[2 * place + 1] == group then
    local raw = call('GETRANGE', key, from + 8 * cell, from + 8 * cell + 7)
    if refused(raw) or #raw ~= 8 then return { err = unreadable(raw) } end
    holds, before = held.records[2 * place + 2] + held.cost, raw
    reply = call('SETRANGE', key, from + 8 * cell, pack_struct('<d', unpack_struct('<d', raw) + held.cost))
  else
    local zeros, after = string.rep('\0', 8 * cell), string.rep('\0', 8 * (RING_GROUP - 1 - cell))
    reply = call('SETRANGE', key, from, zeros .. pack_struct('<d', held.cost) .. after)
  end
  if refused(reply) then return reply end
  one.undo = {
    { 'SETRANGE', key, from + 8 * cell, before or pack_struct('<d', 0) },
    { 'SETRANGE', key, RING_HEAD + 16 * place, pack_struct('<dd', held.records[2 * place + 1], held.records[2 * place + 2]) },
    { 'SETRANGE', key, 16, pack_struct('<dd', held.newest, held.total) },
  }
  call('SETRANGE', key, RING_HEAD + 16 * place, pack_struct('<dd', group, holds))
  return call('SETRANGE', key, 16, pack_struct('<dd', held.slot, one.level))
end

local function ring_write(key, one, goes)
  local reply
  if one.held.groups then reply = ring_write_slot(key, one) else reply = ring_write_list(key, one) end
  if refused(reply) then return reply end
  return call(KEY_EXPIRY, key, span_of(goes))
end
