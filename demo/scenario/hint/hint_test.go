package hint

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// It shows that a listener starts from the hint, and acts on what the atom says.
func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := Scenario.Run(t.Context(), scenario.New(&out)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"  0.14s  mail:   hint ORD-124, writing the mail",
			"  0.15s  mail:   ORD-124 is not sent, the atom says: card declined",
			"  0.23s  mail:   ORD-125 is sent, the atom has 2 paid",
			"=> 3 hints, 2 mails: the atom knew that ORD-124 was not paid\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, &out)
			}
		}
	})
}

func TestStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 120 * time.Millisecond
		stop, start := errors.New("stop"), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
		defer cancel()
		err := Scenario.Run(ctx, scenario.New(io.Discard))
		if took := time.Since(start); !errors.Is(err, stop) || took != after {
			t.Errorf("it returned %v after %v", err, took)
		}
	})
}
