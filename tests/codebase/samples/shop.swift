import Foundation

/// A price.
@frozen
public struct Price: Comparable {
    let amount: Int
    var currency: String = "EUR"

    init(amount: Int) {
        self.amount = amount
    }

    static func < (left: Price, right: Price) -> Bool {
        return left.amount < right.amount
    }

    var isFree: Bool { amount == 0 }
}

protocol Repository {
    associatedtype Item
    func find(id: Int) -> Item?
}

enum State {
    case open
    case closed(reason: String)
}

class Shop<T: Repository> {
    private var items: [T] = []

    func sell(_ price: Price) throws {
        func helper() -> Int { 1 }
        items.removeAll()
        print(helper())
    }

    deinit {
        print("gone")
    }
}

extension Shop {
    func close() {}
}

typealias Handler = (Price) -> Void

let limit = 10

func load(id: Int) async -> Price {
    Price(amount: id)
}
