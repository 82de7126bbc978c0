module Shop

open System
open System.Collections.Generic

/// A price.
type Price =
    { Amount: int
      Currency: string }

type State =
    | Open
    | Closed of string

type Counter(start: int) =
    let mutable count = start
    member this.Increment() = count <- count + 1

let limit = 10

let rec sell (price: Price) n =
    let helper x = x + 1
    helper price.Amount

module Inner =
    let deep x = x
