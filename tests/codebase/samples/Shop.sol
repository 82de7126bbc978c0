pragma solidity ^0.8.0;

import "./Price.sol";

/// A shop.
contract Shop is Ownable {
    uint256 public limit = 10;
    enum State { Open, Closed }
    struct Price { uint256 amount; string currency; }
    event Sold(uint256 amount);
    error TooMuch(uint256 amount);

    constructor(uint256 start) {
        limit = start;
    }

    modifier onlyOpen() {
        _;
    }

    function sell(uint256 amount) external onlyOpen returns (uint256) {
        emit Sold(amount);
        return helper(amount);
    }
}

interface Repository {
    function find(uint256 id) external view returns (uint256);
}

library Maths {
    function twice(uint256 x) internal pure returns (uint256) {
        return x * 2;
    }
}
