-- A limit from the configuration: nothing is remembered for it.

local KIND = 0
local take_sample, recall, memory, forget_memory
