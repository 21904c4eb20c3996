package preload_test

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
	"github.com/ephemeralgo/ephemeral/demo/scenario/preload"
)

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := scenario.New(&out)
		coretest.NothingLeft(t, s.Sink, func() {
			if err := preload.Scenario.Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
		for _, line := range []string{
			`1000 jobs are queued`,
			`170ms later 0 have started`,
			`waits because of batch.loading`,
			`1000 of 1000 jobs are done`,
			`=> 1000 waited 170ms, 0 started; after batch.ready 975 ok, 25 failed in 1.`,
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("no line with %q in\n%s", line, out.String())
			}
		}

		ctx, end := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(333*time.Millisecond, func() { end(enough) })
		begin := time.Now()
		if err := preload.Scenario.Run(ctx, scenario.New(&out)); err != enough || time.Since(begin) != 333*time.Millisecond {
			t.Errorf("ended with %v after %v", err, time.Since(begin))
		}
	})
}
