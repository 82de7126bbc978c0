// Package shop sells.
package shop

import (
	"fmt"
	m "math"
)

const A, B = 1, 2

var total int

type (
	// Price is what is paid.
	Price[T any] struct {
		Amount, Tax int
		next        *Price[T]
	}

	Seller interface {
		Sell(p int) error
	}
)

type Name = string

// Sell sells.
func (p *Price[T]) Sell(n int) error {
	fmt.Println(m.Max(1, 2))
	return nil
}

func main() {
	f := func() {}
	f()
}
