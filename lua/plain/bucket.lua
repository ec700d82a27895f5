-- A token bucket, the short way. Twin: ../bucket.lua.

@limit
local limit_$, weight_$, p1_$
_, limit_$, weight_$, _, _, p1_$, _, _, position = unpack_struct('<dddddddd', request, position)
local capacity_$ = limit_$ * weight_$

@read
local key_$ = keys[key_at + $]
local raw_$, level_$, expires_$, left_$, reset_$ = call('GET', key_$), 0, 0, 0, 0
if raw_$ then
  if #raw_$ ~= 32 then break end
  local at, per_token
  level_$, at, per_token, expires_$ = unpack_struct('<dddd', raw_$)
  if not (per_token == weight_$ and at >= 0 and at <= now and at % 1 == 0 and level_$ >= 0
      and level_$ <= CEILING and level_$ % 1 == 0) then break end
  level_$ = level_$ - (now - at) * p1_$
  if level_$ < 0 then level_$ = 0 end
end

@charge
level_$ = level_$ + cost * weight_$

@stand
local part_$ = level_$ % p1_$
reset_$ = (level_$ - part_$) / p1_$
if part_$ > 0 then reset_$ = reset_$ + 1 end
left_$ = capacity_$ - level_$
if left_$ < 0 then left_$ = 0 end
left_$ = (left_$ - left_$ % weight_$) / weight_$

@deny
local cause_$, retry_$ = 0, 0
if cost > limit_$ then
  cause_$, retry_$ = 3, -1
elseif level_$ + cost * weight_$ > capacity_$ then
  local excess = level_$ + cost * weight_$ - capacity_$
  local rest = excess % p1_$
  cause_$, retry_$ = 1, (excess - rest) / p1_$
  if rest > 0 then retry_$ = retry_$ + 1 end
end

@write
if not refusal then
  local fresh = now + reset_$
  local needed = (fresh - fresh % 1000) / 1000 + 2
  if raw_$ and needed <= expires_$ and expires_$ <= needed + GRACE_MS then
    written = call('SETRANGE', key_$, '0', pack_struct('<dd', level_$, now))
  else
    needed = needed + GRACE_MS
    local px = needed - base_ms
    if px < least_ms then px = least_ms end
    written = call('SET', key_$, pack_struct('<dddd', level_$, now, weight_$, needed), SET_EXPIRY, px)
  end
  if type(written) == 'table' then refusal = written.err end
end
