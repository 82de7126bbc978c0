(** Prices in cents. *)
type price = { cents : int; label : string }

exception Not_found_price of string

module Basket : sig
  type t

  val add : t -> price -> t
end

val total : Basket.t -> int
