library shop;

import 'dart:io';
import 'package:flutter/material.dart' as material;

/// A price.
@immutable
class Price implements Comparable<Price> {
  final int amount;
  static const zero = 0;

  const Price(this.amount);
  Price.free() : amount = 0;
  factory Price.parse(String text) {
    return Price(int.parse(text));
  }

  @override
  int compareTo(Price other) => amount - other.amount;

  bool get isFree => amount == 0;
  set limit(int value) {
    print(value);
  }
}

abstract class Repository<T> {
  T? find(int id);
}

mixin Logging on Repository {
  void log(String text) {
    print(text);
  }
}

extension Doubling on int {
  int twice() => this * 2;
}

enum State { open, closed }

typedef Handler = void Function(Price);

const limit = 10;

Future<Price> load(int id) async {
  int helper() => id;
  return Price(helper());
}
