-- A token bucket, the short way. Twin: ../bucket.lua.

@limit
local capacity_$, weight_$, p1_$
_, capacity_$, weight_$, _, _, p1_$, _, _, position = unpack_struct('<dddddddd', request, position)
capacity_$ = capacity_$ * weight_$

@need
local need_$ = cost * weight_$

@renew
need_$ = cost * weight_$

@own
local need_$ = unpack_struct('<d', request, position) * weight_$
position = position + 32

@read
local expires_$
if raw_$ then
  if #raw_$ ~= 32 then break end
  local at, per_token
  level_$, at, per_token, expires_$ = unpack_struct('<dddd', raw_$)
  if not (per_token == weight_$ and at <= now and at >= 0 and level_$ >= 0 and level_$ <= CEILING
      and level_$ + CEILING - CEILING == level_$ and at + CEILING - CEILING == at) then break end
  level_$ = level_$ - (now - at) * p1_$
  if level_$ < 0 then level_$ = 0 end
else
  reply[at_$] = ABSENT
end

@charge
level_$ = level_$ + need_$

@write
if not refusal then
  -- Rounded up, and a millisecond or two.
  local needed = (now + level_$ / p1_$) / 1000 + 2.5 + CEILING - CEILING
  if raw_$ and needed <= expires_$ and expires_$ <= needed + GRACE_MS then
    local written = call('SETRANGE', keys[at_$], '0', pack_struct('<dd', level_$, now))
    if written ~= 32 then refusal = written.err
    elseif held then held[keys[at_$]] = pack_struct('<dddd', level_$, now, weight_$, expires_$) end
  else
    -- To a tenth of a second, which the decisions of a call mostly share, and with it the text. The more keys go
    -- at the same time, the longer Redis stands still to drop them.
    expires_$ = needed - needed % 100 + GRACE_MS
    local state = pack_struct('<dddd', level_$, now, weight_$, expires_$)
    @set
  end
end
