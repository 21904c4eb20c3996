package retry_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
)

// play is the documentation of a call as simple code: when its attempts begin, when it
// ends, and with which error.
func play(o retry.Options, deadline time.Duration, took []time.Duration, errs []error) (at []time.Duration, end time.Duration, cause, last error) {
	now := time.Duration(0)
	attempts := o.Attempts
	if attempts == 0 {
		attempts = 3
	}
	for n := 1; ; n++ {
		at = append(at, now)
		now += took[n-1]
		err := errs[n-1]
		if err == nil {
			return at, now, nil, nil
		}
		if errors.Is(err, errPermanent) {
			return at, now, nil, errPermanent
		}
		if now >= deadline {
			return at, now, context.DeadlineExceeded, err
		}
		if errors.Is(err, context.Canceled) {
			return at, now, nil, err
		}
		if n == attempts {
			return at, now, retry.ErrAttempts, err
		}
		delay := o.Backoff(n)
		stop := delay < 0
		if o.MaxDelay > 0 {
			delay = min(delay, o.MaxDelay)
		}
		var asks interface {
			error
			RetryAfter() time.Duration
		}
		if errors.As(err, &asks) {
			delay = asks.RetryAfter()
			if o.MaxDelay > 0 && delay > o.MaxDelay {
				return at, now, retry.ErrMaxDelay, err
			}
		} else if stop {
			return at, now, retry.ErrStopped, err
		}
		if o.MaxElapsed > 0 && now+delay > o.MaxElapsed {
			return at, now, retry.ErrMaxElapsed, err
		}
		if now+delay >= deadline {
			return at, now, retry.ErrDeadline, err
		}
		now += delay
	}
}

// unmarked is the error without the mark of After.
func unmarked(err error) error {
	if errors.Is(err, errOnPurpose) {
		return errOnPurpose
	}
	return err
}

var errPermanent = errors.New("permanent, on purpose")

func TestModel(t *testing.T) {
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 300
	}
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 2))
			// Only the deadline falls on an odd nanosecond, so nothing else happens at that
			// time.
			some := func(most int) time.Duration { return time.Duration(random.IntN(most+1)) * 100 * time.Millisecond }
			perhaps := func(most int) time.Duration {
				if random.IntN(2) == 0 {
					return 0
				}
				return some(most)
			}
			o := retry.Options{Attempts: random.IntN(7) - 1, MaxDelay: perhaps(20), MaxElapsed: perhaps(60)}
			o.Backoff = []retry.Backoff{
				retry.Constant(some(10)), retry.Linear(some(10)), retry.Exponential(some(10), 2), retry.Constant(-some(10)),
			}[random.IntN(4)]
			deadline := time.Hour + 1
			if random.IntN(3) == 0 {
				deadline = some(40) + 1
			}
			var took []time.Duration
			var errs []error
			for range random.IntN(8) {
				took = append(took, perhaps(5))
				err := errOnPurpose
				switch random.IntN(10) {
				case 0:
					err = retry.Permanent(errPermanent)
				case 1:
					err = context.Canceled
				case 2, 3:
					err = retry.After(errOnPurpose, some(20))
				}
				errs = append(errs, err)
			}
			took, errs = append(took, 0), append(errs, nil)
			wantAt, wantEnd, cause, last := play(o, deadline, took, errs)

			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			r := newRetrier(t, o)
			begun := time.Now()
			var at []time.Duration
			err := r.Do(ctx, func(context.Context) error {
				at = append(at, time.Since(begun))
				n := len(at) - 1
				time.Sleep(took[n])
				return errs[n]
			})
			cancel()
			require.Equal(t, wantAt, at, "seed %d: %+v", seed, o)
			require.Equal(t, wantEnd, time.Since(begun), "seed %d: %+v", seed, o)
			if cause == nil {
				require.Equal(t, last, err, "seed %d: %+v", seed, o)
			} else {
				got, _ := errors.AsType[*retry.Error](err)
				require.Equal(t, []any{len(at), cause, unmarked(last)}, []any{got.Attempts, got.Cause, got.Err}, "seed %d: %+v", seed, o)
			}
			s := r.Stats()
			require.Equal(t, uint64(1), s.Succeeded+s.Failed)
			require.Equal(t, uint64(len(at)-1), s.Retries)
		}
	})
}
