package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/whatif"
)

// The command prints a row for each setting, searches a limit, and says what it cannot know and what is wrong.
func TestCommand(t *testing.T) {
	name, full := filepath.Join(t.TempDir(), "trace.bin"), filepath.Join(t.TempDir(), "full.bin")
	synctest.Test(t, func(t *testing.T) {
		file := core.Must(os.Create(name))
		defer file.Close()
		c := core.Must(core.NewCoordinator(func(context.Context, int) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}, core.Options{MaxConcurrency: 2, Classes: []core.Class{{Name: "stripe", Limit: 2}}}))
		r := core.Must(whatif.Record(c, file))
		for n := range 100 { // 10 at once take what comes
			c.Class("stripe").Enqueue(t.Context(), n)
			time.Sleep(10 * time.Millisecond)
		}
		c.Drain(t.Context())
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}

		other := core.Must(os.Create(full))
		defer other.Close()
		c = core.Must(core.NewCoordinator(func(context.Context, int) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}, core.Options{MaxConcurrency: 64, MaxQueued: -1}))
		r = core.Must(whatif.Record(c, other))
		for n := range 100 {
			c.TryEnqueue(t.Context(), n)
			time.Sleep(10 * time.Millisecond)
		}
		c.Drain(t.Context())
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
	for _, x := range []struct {
		args, out, errOut string
		status            int
	}{
		{"-limit 4,8 -class stripe.limit=8,16", "limit 4, stripe.limit 8 ", "", 0},
		{"-class stripe.limit=64 -p99 1ms -of stripe", "stripe.limit 64, limit 10 ", "", 0},
		{"-p99 1ms", "no limit keeps the p99 at 1ms", "", 0},
		{full + " -p99 1ms", "limit 10 ", "", 0}, // a lower one refuses some, and nobody waits
		{"", "busy slots", "", 0},
		{"-class strpe.limit=8", "", `no "strpe.limit"`, 2},
		{"-limit many", "", `invalid value "many" for flag -limit: "many" is not a number`, 2},
		{"-limit 8.5", "", `"8.5" is not a whole number`, 2},
		{"-class stripe.rate=NaN", "", `"NaN" is not a number`, 2},
		{"-lane default.limit=+8", "", `"+8" has a sign`, 2},
		{"-limit -1", "", `"-1" has a sign`, 2},
		{"-nosuch", "", "-nosuch", 2},
		{"-of nosuch -limit 8", "nosuch", `no lane or class "nosuch"`, 2},
		{"-h", "", "[-lane batch.limit=8,16]", 0},
	} {
		var out, errOut strings.Builder
		args := strings.Fields(x.args)
		if !strings.HasPrefix(x.args, full) {
			args = append([]string{name}, args...)
		}
		status := run(args, &out, &errOut)
		if status != x.status || !strings.Contains(out.String(), x.out) || x.errOut != "" && strings.Count(errOut.String(), x.errOut) != 1 {
			t.Errorf("%s: got status %d\n%s%s", x.args, status, &out, &errOut)
		}
		if status == 0 && x.errOut == "" && !strings.HasSuffix(out.String(), "Durations do not react to load: each operation runs for as long as it was recorded, whatever runs beside it.\n") {
			t.Errorf("%s: the last line does not say that durations do not react:\n%s", x.args, &out)
		}
	}
}
