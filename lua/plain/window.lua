-- A fixed window of one length, aligned or anchored, the short way. Twin: ../window.lua. Its key goes
-- when the window ends, so that only the first write of a window sets an expiry.

@limit
local weight_$, limit_$, p1_$, p2_$, p3_$ = 1
_, limit_$, _, _, _, p1_$, p2_$, p3_$, position = unpack_struct('<dddddddd', request, position)
local capacity_$ = limit_$

@read
local key_$ = keys[key_at + $]
local raw_$, level_$, start_$, span_$, left_$, reset_$ = call('GET', key_$), 0, now, p1_$, 0, 0
if raw_$ then
  if #raw_$ ~= 24 then break end
  start_$, level_$, span_$ = unpack_struct('<ddd', raw_$)
  if not (start_$ >= 0 and start_$ <= now and start_$ % 1 == 0 and level_$ >= 0 and level_$ <= CEILING
      and level_$ % 1 == 0 and span_$ > 0 and span_$ <= CEILING and span_$ % 1 == 0) then break end
  if now >= start_$ + span_$ then raw_$, level_$, start_$, span_$ = false, 0, now, p1_$ end
end
if not raw_$ and p2_$ == 0 then
  start_$ = now - (now % p1_$ + p3_$ % p1_$) % p1_$
  if start_$ < 0 then start_$ = 0 end
end

@charge
level_$ = level_$ + cost

@stand
reset_$ = 0
if level_$ > 0 then reset_$ = start_$ + span_$ - now end
left_$ = limit_$ - level_$
if left_$ < 0 then left_$ = 0 end

@deny
local cause_$, retry_$ = 0, 0
if cost > limit_$ then cause_$, retry_$ = 3, -1
elseif level_$ + cost > limit_$ then cause_$, retry_$ = 1, start_$ + span_$ - now end

@write
if not refusal then
  if raw_$ then
    written = call('SETRANGE', key_$, '8', pack_struct('<d', level_$))
  else
    local fresh = start_$ + span_$
    local px = (fresh - fresh % 1000) / 1000 + 2 - base_ms
    if px < least_ms then px = least_ms end
    written = call('SET', key_$, pack_struct('<ddd', start_$, level_$, span_$), SET_EXPIRY, px)
  end
  if type(written) == 'table' then refusal = written.err end
end
