package circuitbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

type keyedCall struct {
	key string
	err error
}

func keyedWork(k *circuitbreaker.Keyed) core.Work[keyedCall] {
	return circuitbreaker.WrapKeyed(k, func(c keyedCall) string { return c.key }, func(_ context.Context, c keyedCall) error { return c.err })
}

// The failures of a key open its breaker, and no other one. After its time there is one trial. Healthy keys are forgotten.
func TestKeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Name: "api", Rule: breaker.Options{Threshold: 2, OpenFor: time.Minute}}))
		work := keyedWork(k)
		for range 2 {
			assert.ErrorIs(t, work(t.Context(), keyedCall{"a", errDown}), errDown)
			assert.ErrorIs(t, work(t.Context(), keyedCall{"b", errDown}), errDown)
			assert.NoError(t, work(t.Context(), keyedCall{"b", nil}))
			assert.NoError(t, work(t.Context(), keyedCall{"c", nil}))
		}
		assert.ErrorIs(t, k.Check("a"), circuitbreaker.ErrOpen)
		assert.ErrorIs(t, work(t.Context(), keyedCall{"a", nil}), circuitbreaker.ErrOpen)
		assert.NoError(t, k.Check("b"))
		assert.Equal(t, 1, k.Len(), "healthy keys are forgotten")
		assert.Equal(t, "breaker api is open for key a for 1m0s: down", k.Explain("a"))
		assert.Equal(t, "breaker api: 1 keys are open: a", k.String())
		assert.Empty(t, k.Explain("b"))
		time.Sleep(time.Minute)
		assert.Equal(t, "breaker api tries whether key a works again: down", k.Explain("a"))
		assert.ErrorIs(t, work(t.Context(), keyedCall{"a", errDown}), errDown, "a trial")
		assert.ErrorIs(t, k.Check("a"), circuitbreaker.ErrOpen)
		time.Sleep(time.Minute)
		assert.NoError(t, work(t.Context(), keyedCall{"a", nil}))
		assert.Zero(t, k.Len())
		for range 2 {
			work(t.Context(), keyedCall{"a", errDown})
		}
		k.Reset("a")
		assert.NoError(t, k.Check("a"))
	})
}

// While all places are taken, other keys are allowed and not counted.
func TestKeyedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Capacity: 3, Rule: breaker.Options{Threshold: 2, Window: time.Second}}))
		work := keyedWork(k)
		for range 3 {
			for n := range 5 { // one failure each, which does not count any more in the next round
				assert.ErrorIs(t, work(t.Context(), keyedCall{fmt.Sprint(n), errDown}), errDown)
			}
			time.Sleep(2 * time.Second)
		}
		assert.LessOrEqual(t, k.Len(), 3)
		for n := range 100 {
			assert.ErrorIs(t, work(t.Context(), keyedCall{fmt.Sprint("x", n), errDown}), errDown)
		}
		assert.Equal(t, 3, k.Len())
	})
}

// A failure long ago, or a trial that nobody makes, takes no place from keys that are called.
func TestKeyedForgetsIdleKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Capacity: 3, Rule: breaker.Options{Threshold: 2, OpenFor: time.Second}}))
		work := keyedWork(k)
		for _, key := range []string{"one failure", "open", "open", "busy"} {
			work(t.Context(), keyedCall{key, errDown})
		}
		time.Sleep(59 * time.Second)
		work(t.Context(), keyedCall{"busy", errDown})
		work(t.Context(), keyedCall{"new", errDown})
		assert.Empty(t, k.Explain("new"))
		assert.NotEmpty(t, k.Explain("open"), "it is half-open")
		time.Sleep(time.Second)
		work(t.Context(), keyedCall{"new", errDown})
		work(t.Context(), keyedCall{"new", errDown})
		assert.Error(t, k.Check("new"))
		assert.Empty(t, k.Explain("open"))
		assert.NotEmpty(t, k.Explain("busy"), "it had a call")
		assert.Equal(t, 2, k.Len())
	})
}

// A call that began before its key was remembered, or before it was forgotten, decides nothing about a later state.
func TestKeyedLateResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Rule: breaker.Options{Threshold: 2, OpenFor: time.Minute}}))
		work := keyedWork(k)
		slow := func(err error) (end func()) {
			held := make(chan error)
			go circuitbreaker.WrapKeyed(k, func(string) string { return "a" }, func(context.Context, string) error { return <-held })(t.Context(), "a")
			synctest.Wait()
			return func() { held <- err; synctest.Wait() }
		}
		early := []func(){slow(nil), slow(errDown)}
		for range 2 {
			work(t.Context(), keyedCall{"a", errDown})
		}
		time.Sleep(time.Minute) // half-open
		for _, end := range early {
			end()
			assert.Contains(t, k.Explain("a"), "tries whether", "a result from before the first failure")
		}
		trial := slow(errDown)
		k.Reset("a")
		for range 2 {
			work(t.Context(), keyedCall{"a", errDown})
		}
		time.Sleep(time.Minute)
		trial()
		assert.Contains(t, k.Explain("a"), "tries whether", "a result from before Reset")
	})
}

// All processes obey: an open key is paused, and whichever process makes the trial, its failure pauses the key again.
func TestKeyedOverProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []string
		trial, fail := false, error(nil)
		process := func() (*circuitbreaker.Keyed, core.Work[keyedCall]) {
			k := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Name: "api", Rule: breaker.Options{Threshold: 2, OpenFor: time.Minute},
				Trial: func(context.Context) bool { return trial },
				Pause: func(ctx context.Context, key string, d time.Duration, reason string) error {
					require.NoError(t, ctx.Err())
					pauses = append(pauses, fmt.Sprint(key, " ", d, " ", reason))
					return fail
				}}))
			return k, keyedWork(k)
		}
		first, here := process()
		other, there := process()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		here(ctx, keyedCall{"a", errDown})
		here(ctx, keyedCall{"a", errDown})
		assert.Equal(t, []string{"a 1m0s breaker api: down"}, pauses)
		trial = true
		assert.Equal(t, errDown, there(t.Context(), keyedCall{"a", errDown}), "a trial in another process")
		assert.Len(t, pauses, 2)
		assert.Error(t, other.Check("a"))
		assert.NoError(t, there(t.Context(), keyedCall{"a", nil}), "the store says that it is a trial")
		assert.NoError(t, here(t.Context(), keyedCall{"a", nil}))
		assert.Zero(t, first.Len()+other.Len())
		trial, fail = false, errors.New("no database")
		here(t.Context(), keyedCall{"b", errDown})
		err := here(t.Context(), keyedCall{"b", errDown})
		assert.ErrorIs(t, err, errDown)
		assert.ErrorIs(t, err, fail)
		assert.Len(t, pauses, 3)

		k := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Capacity: 1, Trial: func(context.Context) bool { return trial },
			Pause: func(context.Context, string, time.Duration, string) error {
				pauses = append(pauses, "full")
				return nil
			}}))
		full := keyedWork(k)
		full(t.Context(), keyedCall{"a", errDown})
		trial = true
		full(t.Context(), keyedCall{"b", errDown})
		assert.Equal(t, "full", pauses[len(pauses)-1], "a failed trial pauses its key, also without a place")
		assert.Equal(t, 1, k.Len())
	})
}

func TestKeyedMistakes(t *testing.T) {
	_, err := circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Capacity: -1})
	assert.ErrorContains(t, err, "circuitbreaker: KeyedOptions.Capacity is -1")
	_, err = circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Rule: breaker.Options{Rate: 2}})
	assert.ErrorContains(t, err, "circuitbreaker: ")
	_, err = circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Rule: breaker.Options{Shadow: true}})
	assert.ErrorContains(t, err, "circuitbreaker: KeyedOptions.Rule.Shadow")
	assert.Panics(t, func() { circuitbreaker.WrapKeyed[int](nil, nil, nil) })

	// Code of the user that panics: the key function, CountIf, Trial and Pause.
	k := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Rule: breaker.Options{Threshold: 1},
		CountIf: func(error) bool { panic("x") }, Trial: func(context.Context) bool { panic("x") },
		Pause: func(context.Context, string, time.Duration, string) error { panic("x") }}))
	assert.Error(t, circuitbreaker.WrapKeyed(k, func(int) string { panic("x") }, func(context.Context, int) error { return nil })(t.Context(), 1))
	err = keyedWork(k)(t.Context(), keyedCall{"a", errDown})
	assert.True(t, guard.Is(err, errDown))
	assert.ErrorContains(t, err, "KeyedOptions.Pause")
	assert.Error(t, k.Check("a"))
}
