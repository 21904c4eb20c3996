package main

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

// A request that has waited too long says why. Cached prices are there while the carrier is
// down, and it is asked again when the breaker lets a trial through.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := show(&out); err != nil {
			t.Fatal(err)
		}
		const want = `Vienna 200 490
Paris 503 operation N is running: its body waits for operation N of "calls"; operation N: the only slot of class "carrier" is taken by operation N, for 100ms
Graz 502 the carrier does not answer
Linz 502 the carrier does not answer
Vienna 200 490
Bern 503 operation N is running: its body waits for operation N of "calls"; operation N: deferred because of held signal "circuit.open.carrier"
Bern 200 490
`
		if got := regexp.MustCompile(`operation \d+`).ReplaceAllString(out.String(), "operation N"); got != want {
			t.Errorf("got\n%s", got)
		}
	})
}
