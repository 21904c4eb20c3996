package main

import (
	"strings"
	"testing"
)

// Each step runs once, although the program is stopped in the middle. What is refused is undone backwards.
func TestOrder(t *testing.T) {
	var out strings.Builder
	if err := show(&out); err != nil {
		t.Fatal(err)
	}
	want := `o-1: reserve
o-1: charge
waits for approval.given or approval.ref
o-1: shelf 7, 200, [sent a sent b]
o-2: reserve
o-2: charge
o-2: refund 100 (true)
o-2: free shelf 7 (true)
durable: queue "orders": wait for item 2: durable: item 2 is dead: the order was refused
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}
