import { a } from "./a.js";
const fs = require("fs");

const LIMIT = 10;

/** A price. */
export default class Price extends Base {
  #secret = 1;
  static zero = 0;

  constructor(amount) {
    super();
    this.amount = amount;
  }

  get free() {
    return this.amount === 0;
  }

  async *load() {}

  handler = () => {
    fs.close();
  };
}

export const twice = (x) => x * 2;

function* generate() {
  function inner() {}
  yield inner();
}

Price.prototype.sell = function () {
  return new Price(1);
};

module.exports = {
  method() {},
  arrow: () => 1,
};
