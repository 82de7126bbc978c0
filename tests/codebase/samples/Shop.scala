package com.example.shop

import scala.collection.mutable.Map
import java.time._

/** A price. */
@deprecated
case class Price(amount: Long, currency: String) extends Ordered[Price] {
  def compare(other: Price): Int = amount.compareTo(other.amount)
}

object Price {
  val Zero = 0L
  def free(): Price = new Price(Zero, "EUR")
}

trait Repository[T] {
  def find(id: Int): Option[T]
  type Key
}

sealed abstract class State
case object Open extends State

class Shop(name: String) {
  private var count = 0
  def sell(price: Price): Unit = {
    def helper(x: Int) = x + 1
    count = helper(count)
    println(price)
  }
}
