package core

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// faulty is a body with a method that panics while the engine calls it under its lock. It stands for a fault of
// the library.
type faulty struct {
	task[int, int]
	fault func()
}

func (f *faulty) run(context.Context) error { return nil }

func (f *faulty) of() *group { f.fault(); return nil }

// After a panic under the engine's lock, the process ends and says why. Otherwise all users of the coordinator would wait
// for ever. The panic comes on a worker, and after OnDone, even if the caller recovers panics.
func TestPanicUnderTheLockEndsTheProcess(t *testing.T) {
	for name, where := range map[string]string{
		"worker": "(*worker).replace",
		"OnDone": "(*engine).toldAll",
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("CORE_PLANT_FAULT") != "" {
				plantFault(name == "OnDone")
				return
			}
			cmd := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.timeout=20s")
			cmd.Env = append(os.Environ(), "CORE_PLANT_FAULT=1")
			out, err := cmd.CombinedOutput()
			text := fmt.Sprintf("%s%v", out, err)
			for _, want := range []string{"panic: core: a fault of this library, please report it: planted", "(*faulty).of", where, "exit status 2"} {
				if !strings.Contains(text, want) {
					t.Errorf("got %.3000s\nwant it to contain %q", text, want)
				}
			}
		})
	}
}

// plantFault lets the engine panic when it answers the waits for an operation: on its worker, or, after OnDone, on this
// goroutine.
func plantFault(afterOnDone bool) {
	defer func() { recover() }()
	told := false
	c := Must(NewCoordinator(func(context.Context, int) error { return nil }, Options{}))
	c.Pause()
	f := &faulty{fault: func() {
		if told || !afterOnDone {
			panic("planted")
		}
	}}
	f.Operation.body, f.Operation.sched.Flags = f, grouped
	if afterOnDone {
		c.engine.onDone = []*hook.Hook[Snapshot]{hook.New(glob.Pattern{}, func(Snapshot) { told = true })}
	}
	c.engine.enqueue(context.Background(), &f.Operation, c.door, true)
	if afterOnDone {
		c.Cancel(f.Operation.owner.ID, nil)
	}
	c.Resume()
	c.WaitIdle(context.Background())
}

// Yields pay until two in a row are long, and again after four times as long.
func TestYieldsPayWhileTheyAreShort(t *testing.T) {
	const long = int64(longYield) + 1
	for _, test := range []struct {
		name  string
		took  []int64
		queue uint64
		rests int64
	}{
		{"none", nil, 1, 0},
		{"short ones", []int64{1, long - 1, 1}, 1, 0},
		{"a long one", []int64{1, long}, 1, 0},
		{"long ones between short ones", []int64{long, 1, long, 1}, 1, 0},
		{"two long ones", []int64{1, long, long + 10}, 1, 4 * (long + 10)},
		{"three long ones", []int64{long, long, 2 * long}, 1, 8 * long},
		{"not long for a longer queue", []int64{long, long}, 2, 0},
		{"no queue", []int64{long - 1, long - 1}, 0, 0},
	} {
		var y yields
		now := int64(100)
		for _, took := range test.took {
			y.note(now, now+took, test.queue)
			now += took
		}
		if y.pay(now+test.rests-1) != (test.rests == 0) || !y.pay(now+test.rests) {
			t.Errorf("%s: got until %d, want %d", test.name, y.until.Load(), now+test.rests)
		}
	}
}
