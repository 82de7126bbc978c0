local json = require("json")

-- The shop.
local Shop = {}
Shop.__index = Shop

LIMIT = 10

--- Makes a shop.
function Shop.new(name)
  local self = setmetatable({}, Shop)
  return self
end

function Shop:sell(price)
  local function helper(x)
    return x + 1
  end
  print(helper(price))
end

local function load(id)
  return json.decode(id)
end

Shop.close = function(self)
  print("closed")
end

return Shop
