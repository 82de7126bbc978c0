open Printf

(** A price. *)
type price = { amount : int; currency : string }

type state = Open | Closed of string

exception Not_found_price of string

module type REPOSITORY = sig
  val find : int -> price option
end

module Shop = struct
  let limit = 10

  let rec sell p n =
    let helper x = x + limit in
    printf "%d" (helper p.amount);
    if n > 0 then sell p (n - 1)

  class counter = object
    val mutable count = 0
    method incr = count <- count + 1
  end
end

module Make (R : REPOSITORY) = struct
  let get id = R.find id
end

let load id = Shop.sell id 1

external now : unit -> float = "now"
