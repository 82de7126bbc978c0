<?php

namespace App\Shop;

use App\Price;

const LIMIT = 10;

/** A shop. */
#[Entity]
abstract class Shop extends Base implements Seller
{
    use Logging;

    private int $total = 0;
    const ZERO = 0;

    public function __construct(private string $name)
    {
    }

    abstract protected function find(int $id): ?Price;

    public static function load(): static
    {
        return new static(helper(1));
    }
}

interface Seller
{
    public function sell(Price $price): void;
}

trait Logging
{
    public function log(): void
    {
    }
}

enum State: string
{
    case Open = 'open';
}

function helper($x)
{
    return fn($y) => $x + $y;
}
