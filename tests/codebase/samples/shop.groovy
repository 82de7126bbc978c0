package com.example

import groovy.json.JsonSlurper

/** A price. */
class Price implements Comparable<Price> {
    int amount
    String currency = 'EUR'

    int compareTo(Price other) {
        return amount <=> other.amount
    }

    static Price free() {
        return new Price(amount: 0)
    }
}

interface Repository {
    Price find(int id)
}

def load(id) {
    println id
}
