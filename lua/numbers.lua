-- Integer arithmetic on doubles, exact below 2^53, what of it limits share, and what replies mean. Rust's integers
-- are exact by themselves. Twins in crates/core/src/algorithm/: `mul_div` of sliding.rs, `pace` of judge.rs, `debited`
-- of abilities.rs.

-- Twin: `EngineKind` in crates/core/src/algorithm.rs.
local BUCKET, WINDOW, INTERVAL, LOG, SLIDING, SLOTS, WARM_UP, SPARSE = 1, 2, 3, 4, 5, 6, 7, 8

local fmod, floor, min, max = math.fmod, math.floor, math.min, math.max

-- fmod is exact also where a is 2^53 or more.
local function floor_div(a, b)
  return (a - fmod(a, b)) / b
end

local function ceil_div(a, b)
  local rest = fmod(a, b)
  if rest == 0 then return a / b end
  return (a - rest) / b + 1
end

-- The quotient of a · b and c, rounded down; nothing of nothing. For a <= c < 2^53 / 2 (or a result
-- that is exact). Where the product does not fit a double, b is taken in parts that do.
local function mul_div(a, b, c)
  if c == 0 then return 0 end
  if a * b < 9007199254740992 then return floor_div(a * b, c) end
  local base, place, rest = 2, 1, 0
  while base * 2 * c <= 9007199254740992 do base = base * 2 end
  while place * base <= b do place = place * base end
  local whole, part = floor_div(a, c), fmod(a, c)
  local quotient = 0
  local remainder = b
  while place >= 1 do
    local digit = floor_div(remainder, place)
    remainder = remainder - digit * place
    local shifted, product = rest * base, part * digit
    quotient = quotient * base + floor_div(shifted, c) + floor_div(product, c)
    rest = fmod(shifted, c) + fmod(product, c)
    if rest >= c then quotient, rest = quotient + 1, rest - c end
    place = place / base
  end
  return whole * b + quotient
end

-- Whether x is a whole number that a double holds exactly; false for NaN and for nil.
local function exact(x)
  return x and x >= 0 and x < 9007199254740992 and x % 1 == 0
end

-- For a number that Redis must store as text: concatenation would round it to 14 digits.
local function whole(x)
  return string.format('%.0f', x)
end

-- What a write says of a key that goes at `goes` (in ms).
local function span_of(goes)
  return max(goes - base_ms, least_ms)
end

-- The last string that a limit's state was read from.
local last_raw = false

local function refused(reply)
  return type(reply) == 'table' and reply.err
end

local NOT_A_STATE = 'the key holds something else than this limit\'s state'

-- Why what a key holds is not a state of its limit.
local function unreadable(raw)
  return refused(raw) or NOT_A_STATE
end

-- How long a call that is let through waits for its turn, where the limit paces its calls.
local function pace(limit, one)
  if not limit.undelayed or one.level <= limit.undelayed then return 0 end
  return ceil_div(one.level - limit.undelayed, limit.p1)
end

-- What a forced debit charges.
local function debited(limit, one, cost)
  local most = limit.ceiling
  if limit.debt_level >= 0 then most = min(limit.debt_level, most) end
  local units = floor_div(max(most - one.level, 0), limit.weight)
  -- A log that counts denied attempts would drop more again.
  if limit.engine == LOG and limit.count_denied == 1 then cost = min(cost, limit.limit + 1) end
  return min(cost, units)
end
