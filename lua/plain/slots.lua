-- A bucketed window, the short way. Twin: ../slots.lua. Its key goes when the newest part no longer counts,
-- or p3 later, so that only the first write of a part sets an expiry, and only that one moves the others.

@limit
-- How many parts count, the current one, and when the key goes.
local capacity_$, p1_$, p2_$, count_$, current_$, fresh_$
_, capacity_$, _, _, _, p1_$, p2_$, fresh_$, position = unpack_struct('<dddddddd', request, position)
do
  local window = (p2_$ - p2_$ % 2) / 2
  local elapsed = now % window
  local offset = elapsed - elapsed % p1_$
  count_$ = (window + p1_$ - 1 - (window + p1_$ - 1) % p1_$) / p1_$
  current_$ = (now - elapsed) / window * count_$ + offset / p1_$
  fresh_$ = now - elapsed + offset + window + fresh_$
  if p2_$ % 2 == 1 then
    count_$ = count_$ + 1
    fresh_$ = fresh_$ + math.min(p1_$, window - offset)
  end
end

@read
-- The newest part, its hits, what the older ones hold, how many those are, and how many of them no longer count.
local newest_$, hits_$, rest_$, older_$, gone_$ = 0, 0, 0, 0, 0
if raw_$ then
  if #raw_$ < 48 then break end
  local width, frame
  older_$, width, frame, rest_$, newest_$, hits_$ = unpack_struct('<dddddd', raw_$)
  if not (#raw_$ == 48 + 16 * older_$ and width == p1_$ and frame == p2_$ and newest_$ <= current_$ and newest_$ >= 0
      and hits_$ >= 0 and rest_$ >= 0 and hits_$ + rest_$ <= CEILING
      and newest_$ + CEILING - CEILING == newest_$ and hits_$ + CEILING - CEILING == hits_$
      and rest_$ + CEILING - CEILING == rest_$) then break end
  if newest_$ + count_$ <= current_$ then
    hits_$, rest_$, gone_$ = 0, 0, older_$
  else
    while gone_$ < older_$ do
      local part, its = unpack_struct('<dd', raw_$, 49 + 16 * gone_$)
      if not (part + count_$ <= current_$) then break end
      rest_$, gone_$ = rest_$ - its, gone_$ + 1
    end
    if not (rest_$ >= 0 and rest_$ + CEILING - CEILING == rest_$) then break end
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
  if hits_$ > 0 and newest_$ == current_$ and gone_$ == 0 then
    hits_$ = hits_$ + charged_$
    local written = call('SETRANGE', keys[at_$], '40', pack_struct('<d', hits_$))
    if written ~= #raw_$ then refusal = written.err
    elseif held then held[keys[at_$]] = raw_$:sub(1, 40) .. pack_struct('<d', hits_$) .. raw_$:sub(49) end
  else
    local kept, newest = '', ''
    if older_$ > gone_$ then kept = raw_$:sub(49 + 16 * gone_$) end
    older_$ = older_$ - gone_$
    if hits_$ > 0 and newest_$ ~= current_$ then
      newest = pack_struct('<dd', newest_$, hits_$)
      older_$, rest_$, hits_$ = older_$ + 1, rest_$ + hits_$, 0
    end
    local state = pack_struct('<dddddd', older_$, p1_$, p2_$, rest_$, current_$, hits_$ + charged_$) .. kept .. newest
    local expires_$ = (fresh_$ - fresh_$ % 1000) / 1000 + 2
    @set
  end
end
