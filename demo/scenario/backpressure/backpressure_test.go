package backpressure_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/demo/scenario/backpressure"
)

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := scenario.New(&out)
		coretest.NothingLeft(t, s.Sink, func() {
			if err := backpressure.Scenario.Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
		for _, line := range []string{
			`pressure begins: 5 items wait for the consumer`,
			`item 10 waits: backpressure.consumer`,
			`pressure ends: 2 items wait for the consumer`,
			`the producer waited 124ms to enqueue item 11`,
			`=> 15 produced, 15 consumed; at most 5 waited; the producer was held up `,
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("no line with %q in\n%s", line, out.String())
			}
		}

		ctx, end := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(601*time.Millisecond, func() { end(enough) })
		begin := time.Now()
		if err := backpressure.Scenario.Run(ctx, scenario.New(&out)); err != enough || time.Since(begin) != 601*time.Millisecond {
			t.Errorf("ended with %v after %v", err, time.Since(begin))
		}
	})
}
