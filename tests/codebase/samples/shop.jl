module Shop

using LinearAlgebra
import Base: show

const LIMIT = 10

abstract type Item end

"A price."
struct Price <: Item
    amount::Int
    currency::String
end

mutable struct Counter{T}
    count::T
end

function sell(price::Price, n::Int=1)
    helper(x) = x + 1
    return helper(price.amount)
end

load(id) = Price(id, "EUR")

macro twice(ex)
    return :($ex * 2)
end

function Base.show(io::IO, p::Price)
    print(io, p.amount)
end

end
