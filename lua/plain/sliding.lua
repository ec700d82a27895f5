-- A sliding window of two counters, the short way. Twin: ../sliding.lua. Its key goes two spans after
-- the start of a window that was used, so that only the first write of a window sets an expiry.

@limit
local capacity_$, p1_$
_, capacity_$, _, _, _, p1_$, _, _, position = unpack_struct('<dddddddd', request, position)
local aligned_$ = now - now % p1_$

@read
local start_$, current_$, previous_$ = aligned_$, 0, 0
if raw_$ then
  if #raw_$ ~= 32 then break end
  local began, span
  began, current_$, previous_$, span = unpack_struct('<dddd', raw_$)
  if not (span == p1_$ and began <= now and began >= 0 and current_$ >= 0 and previous_$ >= 0
      and current_$ * p1_$ <= CEILING and previous_$ * p1_$ <= CEILING
      and began + CEILING - CEILING == began and current_$ + CEILING - CEILING == current_$
      and previous_$ + CEILING - CEILING == previous_$) then break end
  local elapsed = now - began
  if elapsed >= p1_$ then
    if elapsed < 2 * p1_$ and current_$ > 0 then
      start_$, current_$, previous_$, elapsed = began + p1_$, 0, current_$, elapsed - p1_$
    else
      current_$, previous_$ = 0, 0
    end
  else
    start_$ = began
  end
  level_$ = current_$
  if previous_$ > 0 then
    local gone = previous_$ * elapsed
    level_$ = current_$ + previous_$ - (gone - gone % p1_$) / p1_$
  end
else
  reply[at_$] = ABSENT
end
-- A window that nothing was charged in has a key that goes with the window before it.
local kept_$ = current_$ > 0

@charge
level_$, current_$ = level_$ + need_$, current_$ + need_$

@write
if not refusal then
  if kept_$ then
    local written = call('SETRANGE', keys[at_$], '8', pack_struct('<d', current_$))
    if written ~= 32 then refusal = written.err
    elseif held then held[keys[at_$]] = pack_struct('<dddd', start_$, current_$, previous_$, p1_$) end
  else
    local state, fresh = pack_struct('<dddd', start_$, current_$, previous_$, p1_$), start_$ + 2 * p1_$
    local expires_$ = (fresh - fresh % 1000) / 1000 + 2
    @set
  end
end
