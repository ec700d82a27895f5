-- Items in a list: a place is free as soon as the item is taken. An element is the id, as two doubles, and the payload.

local LENGTH = 'LLEN'
