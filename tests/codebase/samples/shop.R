library(stats)
source("common.R")

LIMIT <- 10

# Sells.
sell <- function(price, n = 1) {
  helper <- function(x) x + 1
  helper(price) * n
}

load = function(id) {
  sell(id)
}

setClass("Price", representation(amount = "numeric"))
