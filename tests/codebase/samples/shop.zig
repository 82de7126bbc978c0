const std = @import("std");

pub const limit: u32 = 10;

/// A price.
pub const Price = struct {
    amount: u32,
    currency: []const u8,

    pub fn isFree(self: Price) bool {
        return self.amount == 0;
    }
};

const State = enum { open, closed };

const Value = union(enum) { int: i64, none };

var counter: u32 = 0;

pub fn sell(price: Price) !void {
    std.debug.print("{}", .{price.amount});
    helper();
}

fn helper() void {
    counter += 1;
}

test "sells" {
    try sell(.{ .amount = 1, .currency = "EUR" });
}
