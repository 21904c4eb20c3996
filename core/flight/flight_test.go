package flight_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/flight"
)

var errOnPurpose = errors.New("failed on purpose")

type group = flight.Group[string, int]

// want checks what Do returns.
func want(t *testing.T, g *group, ctx context.Context, key string, load func(context.Context, string) (int, error), value int, cause error) {
	t.Helper()
	if got, err := g.Do(ctx, key, load); got != value || !errors.Is(err, cause) {
		t.Errorf("Do(%q): got %d, %v, want %d, %v", key, got, err, value, cause)
	}
}

// after returns a load function that takes a second, and counts its calls.
func after(calls *int) func(context.Context, string) (int, error) {
	return func(ctx context.Context, _ string) (int, error) {
		*calls++
		call := *calls
		time.Sleep(time.Second)
		return call, ctx.Err()
	}
}

func TestDoLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			g     group
			calls int
			all   sync.WaitGroup
		)
		for range 10 {
			all.Go(func() { want(t, &g, t.Context(), "a", after(&calls), 1, nil) })
		}
		all.Wait()
		want(t, &g, t.Context(), "a", after(&calls), 2, nil) // nothing is stored
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		want(t, &g, ended, "a", after(&calls), 0, errOnPurpose)
		coretest.Check(t, calls == 2, "%d loads", calls)
	})
}

// The load has the values of the first caller's context, and goes on until all callers have
// left. Then it is cancelled with the cause of the last caller, and no new caller finds it.
func TestCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var (
			g      group
			cause  error
			caller = []error{errors.New("first"), errors.New("second")}
			all    sync.WaitGroup
		)
		load := func(ctx context.Context, _ string) (int, error) {
			if _, limited := ctx.Deadline(); limited || ctx.Value(key{}) != 0 {
				t.Errorf("the context of the load is %v", ctx)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return 7, nil
		}
		for i, left := range caller {
			ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), key{}, i), time.Duration(i+1)*time.Second, left)
			defer cancel()
			all.Go(func() { want(t, &g, ctx, "a", load, 0, left) })
			synctest.Wait()
		}
		all.Wait()
		calls := 0
		want(t, &g, t.Context(), "a", after(&calls), 1, nil)
		coretest.Check(t, cause == caller[1], "cancelled because: %v", cause)
	})
}

// The context of a load ends with the load. Contexts made from it no longer belong to a
// load.
func TestContextAfterTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g group
		var kept context.Context
		keep := func(ctx context.Context, _ string) (int, error) { kept = ctx; return 1, nil }
		caller, cancel := context.WithCancelCause(t.Context())
		want(t, &g, caller, "a", keep, 1, nil)
		cancel(errOnPurpose)
		if cause := context.Cause(kept); cause != context.Canceled {
			t.Errorf("the cause is %v", cause)
		}
		want(t, &g, context.WithoutCancel(kept), "a", keep, 1, nil)
	})
}

func TestLoadsThatFail(t *testing.T) {
	for name, fail := range map[string]func() (int, error){
		"error":  func() (int, error) { return 7, errOnPurpose },
		"panic":  func() (int, error) { panic(errOnPurpose) },
		"Goexit": func() (int, error) { runtime.Goexit(); return 7, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g group
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						value, err := g.Do(t.Context(), "a", func(context.Context, string) (int, error) {
							time.Sleep(time.Second)
							return fail()
						})
						var p *core.PanicError
						got := []any{errors.As(err, &p), errors.Is(err, errOnPurpose), value}
						want := []any{name != "error", name != "Goexit", 0}
						coretest.Check(t, slices.Equal(got, want), "%v: got a panic, its cause and a value %v, want %v", err, got, want)
						if p != nil && !strings.Contains(string(p.Stack), "flight_test.go") {
							t.Errorf("the stack does not show where: %s", p.Stack)
						}
					})
				}
				all.Wait()
				calls := 0
				want(t, &g, t.Context(), "a", after(&calls), 1, nil)
			})
		})
	}
}

// Loads of two groups wait for each other, and different callers have begun them. Each such
// load gets an error, over any number of loads. A load that no longer waits does not count.
func TestCircles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			groups [2]group
			load   func(ctx context.Context, key string) (int, error)
			all    sync.WaitGroup
		)
		load = func(ctx context.Context, key string) (int, error) { // a0 b1 c0 d1 e0 f1 a0
			time.Sleep(time.Second)
			next := string('a' + (key[0]-'a'+1)%6)
			return groups[(key[0]-'a'+1)%2].Do(ctx, next, load)
		}
		for i, key := range []string{"a", "b", "c", "d", "e", "f"} {
			all.Go(func() { want(t, &groups[i%2], t.Context(), key, load, 0, core.ErrWouldDeadlock) })
		}
		all.Wait()

		g := &groups[0]
		want(t, g, t.Context(), "self", func(ctx context.Context, key string) (int, error) { return g.Do(ctx, key, load) }, 0, core.ErrWouldDeadlock)

		all.Go(func() {
			want(t, g, t.Context(), "slow", func(ctx context.Context, _ string) (int, error) {
				time.Sleep(time.Minute)
				return g.Do(ctx, "impatient", nil)
			}, 1, nil)
		})
		synctest.Wait()
		want(t, g, t.Context(), "impatient", func(ctx context.Context, _ string) (int, error) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			want(t, g, short, "slow", nil, 0, context.DeadlineExceeded)
			time.Sleep(time.Hour)
			return 1, nil
		}, 1, nil)
		all.Wait()
	})
}

func TestTable(t *testing.T) {
	var table flight.Table[float64, int]
	one, two := new(int), new(int)
	table.Delete(1)
	table.Put(1, one)
	table.Put(1, two)
	table.Put(math.NaN(), one) // otherwise it would stay for ever
	if got := slices.Collect(table.Keys()); !slices.Equal(got, []float64{1}) || table.Get(1) != two || table.Get(2) != nil {
		t.Errorf("keys %v, load %p", got, table.Get(1))
	}
	removed := []bool{table.Remove(1, one), table.Remove(1, two), table.Remove(1, two), table.Remove(math.NaN(), one)}
	want := []bool{false, true, false, false}
	coretest.Check(t, slices.Equal(removed, want), "Remove of another, of the present, of none, and of NaN: got %v, want %v", removed, want)
	for round := range 2 {
		for key := range 1000 {
			table.Put(float64(key), one)
		}
		for key := range table.Keys() {
			table.Delete(key)
		}
		coretest.Check(t, reflect.ValueOf(table).IsZero(), "round %d: an empty table holds on to its room", round)
	}
}

func TestAllocations(t *testing.T) {
	var g group
	load := func(_ context.Context, key string) (int, error) { return len(key), nil }
	if got := testing.AllocsPerRun(1000, func() { g.Do(context.Background(), "key", load) }); got > 7 {
		t.Errorf("%v allocations for a load", got)
	}
}

// A key that cannot be hashed leaves the group unlocked.
func TestKeyThatCannotBeHashed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[any, int]
		load := func(context.Context, any) (int, error) { return 7, nil }
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			g.Do(t.Context(), []int{1}, load)
		}()
		if v, err := g.Do(t.Context(), "a", load); v != 7 || err != nil {
			t.Errorf("got %d, %v", v, err)
		}
	})
}
