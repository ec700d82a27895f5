-- A sliding window of two counters, the short way. Twin: ../sliding.lua. Its key goes two spans after
-- the start of a window that was used, so that only the first write of a window sets an expiry.

@limit
local weight_$, limit_$, p1_$ = 1
_, limit_$, _, _, _, p1_$, _, _, position = unpack_struct('<dddddddd', request, position)
local capacity_$ = limit_$
if limit_$ * p1_$ >= 9007199254740992 then
  position = head
  break
end

@read
local key_$ = keys[key_at + $]
local raw_$, start_$, current_$, previous_$, left_$, reset_$ = call('GET', key_$), now - now % p1_$, 0, 0, 0, 0
if raw_$ then
  if #raw_$ ~= 32 then break end
  local span
  start_$, current_$, previous_$, span = unpack_struct('<dddd', raw_$)
  if not (span == p1_$ and start_$ >= 0 and start_$ <= now and start_$ % 1 == 0 and current_$ >= 0
      and current_$ % 1 == 0 and previous_$ >= 0 and previous_$ % 1 == 0
      and current_$ * p1_$ < 2251799813685248 and previous_$ * p1_$ < 2251799813685248) then break end
  if now - start_$ >= p1_$ then
    if current_$ > 0 and now - start_$ < 2 * p1_$ then
      start_$, current_$, previous_$ = start_$ + p1_$, 0, current_$
    else
      start_$, current_$, previous_$ = now - now % p1_$, 0, 0
    end
  end
end
-- A window that nothing was charged in has a key that goes with the window before it.
local kept_$ = raw_$ and current_$ > 0
local elapsed_$, level_$ = now - start_$, current_$
if previous_$ > 0 then
  local gone = previous_$ * elapsed_$
  level_$ = current_$ + previous_$ - (gone - gone % p1_$) / p1_$
end

@charge
level_$, current_$ = level_$ + cost, current_$ + cost

@stand
reset_$ = 0
if current_$ > 0 then reset_$ = 2 * p1_$ - elapsed_$
elseif level_$ > 0 then reset_$ = p1_$ - elapsed_$ end
left_$ = limit_$ - level_$
if left_$ < 0 then left_$ = 0 end

@deny
local cause_$, retry_$ = 0, 0
if cost > limit_$ then
  cause_$, retry_$ = 3, -1
elseif level_$ + cost > limit_$ then
  -- What may still count when the cost fits: some of the window before, or else of this one.
  local kept, whole, ends = limit_$ - cost, current_$, 2 * p1_$
  if kept >= current_$ then kept, whole, ends = kept - current_$, previous_$, p1_$ end
  local counts = kept * p1_$
  cause_$, retry_$ = 1, ends - elapsed_$ - (counts - counts % whole) / whole
end

@write
if not refusal then
  if kept_$ then
    written = call('SETRANGE', key_$, '8', pack_struct('<d', current_$))
  else
    local fresh = now + reset_$
    local px = (fresh - fresh % 1000) / 1000 + 2 - base_ms
    if px < least_ms then px = least_ms end
    written = call('SET', key_$, pack_struct('<dddd', start_$, current_$, previous_$, p1_$), SET_EXPIRY, px)
  end
  if type(written) == 'table' then refusal = written.err end
end
