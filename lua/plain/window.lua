-- A fixed window of one length, aligned or anchored, the short way. Twin: ../window.lua. Its key goes
-- when the window ends, so that only the first write of a window sets an expiry.

@limit
local capacity_$, p1_$, p2_$, p3_$
_, capacity_$, _, _, _, p1_$, p2_$, p3_$, position = unpack_struct('<dddddddd', request, position)

@read
local start_$
local kept_$ = raw_$
if raw_$ then
  if #raw_$ ~= 24 then break end
  local span
  start_$, level_$, span = unpack_struct('<ddd', raw_$)
  if not (span == p1_$ and start_$ <= now and start_$ >= 0 and level_$ >= 0 and level_$ <= CEILING
      and start_$ + CEILING - CEILING == start_$ and level_$ + CEILING - CEILING == level_$) then break end
  if now >= start_$ + p1_$ then level_$, kept_$ = 0, false end
else
  reply[at_$] = ABSENT
end

@charge
level_$ = level_$ + need_$

@write
if not refusal then
  if kept_$ then
    local written = call('SETRANGE', keys[at_$], '8', pack_struct('<d', level_$))
    if written ~= 24 then refusal = written.err
    elseif held then held[keys[at_$]] = pack_struct('<ddd', start_$, level_$, p1_$) end
  else
    start_$ = now
    if p2_$ == 0 then
      start_$ = now - (now % p1_$ + p3_$ % p1_$) % p1_$
      if start_$ < 0 then start_$ = 0 end
    end
    local state, fresh = pack_struct('<ddd', start_$, level_$, p1_$), start_$ + p1_$
    local expires_$ = (fresh - fresh % 1000) / 1000 + 2
    @set
  end
end
