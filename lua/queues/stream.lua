-- Items in a stream: a place is held until the item is acked.

local LENGTH = 'XLEN'
