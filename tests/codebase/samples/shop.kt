package com.example.shop

import kotlin.math.max
import java.util.*

/** A price. */
@Serializable
data class Price(val amount: Long, val currency: String) : Comparable<Price> {
    override fun compareTo(other: Price): Int = amount.compareTo(other.amount)

    companion object {
        const val ZERO = 0L

        fun free(): Price = Price(ZERO, "EUR")
    }
}

interface Repository<T> {
    fun find(id: Int): T?
}

enum class State { OPEN, CLOSED }

object Registry {
    private val items = mutableMapOf<String, Price>()

    fun register(name: String, price: Price) {
        items[name] = price
    }
}

sealed class Result {
    class Ok(val value: Int) : Result()
}

typealias Handler = (Price) -> Unit

const val LIMIT = 10

fun <T> List<T>.second(): T = this[1]

suspend fun load(id: Int): Price {
    fun helper() = max(id, LIMIT)
    return Price(helper().toLong(), "EUR")
}
