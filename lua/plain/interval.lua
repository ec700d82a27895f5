-- Interval refill, the short way. Twin: ../interval.lua. Its key goes when the last of it has come back, so
-- that only a charge which takes one more period sets an expiry.

@limit
local capacity_$, ceiling_$, p1_$, p2_$, p3_$
_, capacity_$, _, ceiling_$, _, p1_$, p2_$, p3_$, position = unpack_struct('<dddddddd', request, position)

@read
local last_$, goes_$ = now, 0
if raw_$ then
  if #raw_$ ~= 24 then break end
  last_$, level_$, goes_$ = unpack_struct('<ddd', raw_$)
  if not (last_$ <= now and last_$ >= 0 and level_$ >= 0 and level_$ <= ceiling_$
      and last_$ + CEILING - CEILING == last_$ and level_$ + CEILING - CEILING == level_$) then break end
  local refills = now - last_$
  refills = (refills - refills % p2_$) / p2_$
  level_$, last_$ = level_$ - refills * p1_$, last_$ + refills * p2_$
else
  reply[at_$] = ABSENT
end
if level_$ <= 0 then
  level_$, last_$ = 0, now
  if p3_$ == 1 then last_$ = now - now % p2_$ end
end

@charge
level_$ = level_$ + need_$

@write
if not refusal then
  local fresh = last_$ + ((level_$ - 1 - (level_$ - 1) % p1_$) / p1_$ + 1) * p2_$
  local expires_$ = (fresh - fresh % 1000) / 1000 + 2
  if raw_$ and expires_$ == goes_$ then
    local written = call('SETRANGE', keys[at_$], '0', pack_struct('<dd', last_$, level_$))
    if written ~= 24 then refusal = written.err
    elseif held then held[keys[at_$]] = pack_struct('<ddd', last_$, level_$, expires_$) end
  else
    local state = pack_struct('<ddd', last_$, level_$, expires_$)
    @set
  end
end
