-- A bucketed window, the short way. Twin: ../slots.lua. Its key goes when the newest slot no longer counts,
-- so that only the first write of a slot sets an expiry, and only that one moves the others.

@limit
local capacity_$, lasts_$ = limit_$, p1_$ * p2_$

@read
-- The newest slot, what the older ones hold, how many those are, and how many of them no longer count.
local start_$, hits_$, rest_$, older_$, gone_$ = 0, 0, 0, 0, 0
if raw_$ then
  if #raw_$ < 48 then break end
  local width, slots
  older_$, width, slots, rest_$, start_$, hits_$ = unpack_struct('<dddddd', raw_$)
  if not (#raw_$ == 48 + 16 * older_$ and width == p1_$ and slots == p2_$ and start_$ <= now and start_$ >= 0
      and hits_$ >= 0 and rest_$ >= 0 and hits_$ + rest_$ <= CEILING
      and start_$ % 1 + hits_$ % 1 + rest_$ % 1 == 0) then break end
  if now - start_$ >= lasts_$ then
    hits_$, rest_$, gone_$ = 0, 0, older_$
  else
    while gone_$ < older_$ do
      local from, its = unpack_struct('<dd', raw_$, 49 + 16 * gone_$)
      if not (now - from >= lasts_$) then break end
      rest_$, gone_$ = rest_$ - its, gone_$ + 1
    end
    if not (rest_$ >= 0 and rest_$ % 1 == 0) then break end
    level_$ = rest_$ + hits_$
  end
else
  reply[at_$] = ABSENT
end
local charged_$ = 0

@charge
level_$, charged_$ = level_$ + need_$, charged_$ + need_$

@write
if not refusal then
  local start = now - now % p1_$
  if hits_$ > 0 and start == start_$ and gone_$ == 0 then
    hits_$ = hits_$ + charged_$
    local written = call('SETRANGE', keys[at_$], '40', pack_struct('<d', hits_$))
    if written ~= #raw_$ then refusal = written.err
    elseif held then held[keys[at_$]] = raw_$:sub(1, 40) .. pack_struct('<d', hits_$) .. raw_$:sub(49) end
  else
    local kept, newest = '', ''
    if older_$ > gone_$ then kept = raw_$:sub(49 + 16 * gone_$) end
    older_$ = older_$ - gone_$
    if hits_$ > 0 and start ~= start_$ then
      newest = pack_struct('<dd', start_$, hits_$)
      older_$, rest_$, hits_$ = older_$ + 1, rest_$ + hits_$, 0
    end
    local state = pack_struct('<dddddd', older_$, p1_$, p2_$, rest_$, start, hits_$ + charged_$) .. kept .. newest
    local fresh = start + lasts_$
    local expires_$ = (fresh - fresh % 1000) / 1000 + 2
    @set
  end
end
