-- What is the same for each limit, whatever its engine, the short way. A part within a part is indented.

@need
local need_$ = cost

@renew
need_$ = cost

@limit_of_own
  @limit
position = position + 32

@own
local need_$ = unpack_struct('<d', request, position)
position = position + 32

@state
local at_$, level_$ = key_at + $, 0
local raw_$ = reply[at_$]
if apart then
  local since = held and held[keys[at_$]]
  if since then raw_$ = since
  elseif raw_$ == nil then raw_$ = call('GET', keys[at_$]) end
  reply[at_$] = raw_$
end

@expiry
local px = expires_$ - base_ms
if px < least_ms then px = least_ms end
if px ~= px_last then px_last, px_text = px, string.format('%.0f', px) end

@undo
if count > 1 and raw_$ then
  -- What a charge has written expires no earlier.
  if call('SET', keys[at_$], raw_$, 'KEEPTTL').err then call('SETRANGE', keys[at_$], '0', raw_$) end
elseif count > 1 and type(call('DEL', keys[at_$])) == 'table' then
  call('SET', keys[at_$], '', 'PXAT', '1')
end
if held then held[keys[at_$]] = raw_$ end

@set
  @expiry
local written
if joined and not raw_$ then written = call('SET', keys[at_$], state, SET_EXPIRY, px_text, 'NX')
else written = call('SET', keys[at_$], state, SET_EXPIRY, px_text) end
-- What is there and was not read is of another type, and says so.
if not written then written = call('GET', keys[at_$]) end
refusal = written.err
if held and not refusal then held[keys[at_$]] = state end
