-- What the server puts around scripts: the errors that they see, and the globals that they may not make.
--
-- The arguments are functions of the server: `value_of` makes an error of the server what scripts see of it,
-- `line_of_script` is the line that is running. The results are `pcall`, and what runs a script.

local value_of, line_of_script = ...
local error, pcall, setmetatable, tostring, type, xpcall = error, pcall, setmetatable, tostring, type, xpcall

-- As in Redis, a table of an error becomes its text.
local function as_lua(ran, why, ...)
  if ran then return ran, why, ... end
  if type(why) == 'userdata' then why = value_of(why) end
  if type(why) == 'table' and type(why.err) == 'string' then why = why.err end
  return false, why
end

local function protected(...)
  return as_lua(pcall(...))
end

local function describe(why)
  if type(why) == 'userdata' then why = value_of(why) end
  if type(why) ~= 'table' then why = { err = 'ERR ' .. tostring(why) } end
  why.line = line_of_script()
  return why
end

local function execute(script)
  return xpcall(script, describe)
end

setmetatable(_G, {
  __index = function(_, name)
    error('Script attempted to access nonexistent global variable \'' .. tostring(name) .. '\'', 2)
  end,
  __newindex = function()
    error('Attempt to modify a readonly table', 2)
  end,
})
return protected, execute
