package bench

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Our limiter gives the answers of x/time/rate to random requests at random times, with
// rates and bursts that change. x/time/rate computes in floating point, so the test makes
// no request whose answer depends on rounding. A full bucket is exact.
func TestLimiterDoesWhatXTimeRateDoes(t *testing.T) {
	steps := 100_000
	if testing.Short() {
		steps = 20_000
	}
	for _, reserve := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			per, burst := 10.0, 5
			ours, err := ratelimit.New(core.Rate{PerSecond: per, Burst: burst}, ratelimit.Options{IgnoreCommands: true})
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			theirs := rate.NewLimiter(rate.Limit(per), burst)
			allowed, delayed := 0, 0
			for i := range steps {
				time.Sleep(time.Duration(random.Int64N(int64(1e9 / per))))
				n := 1 + random.IntN(burst)
				if random.IntN(3) > 0 {
					n = 1
				}
				if tokens := theirs.Tokens(); tokens != float64(n) && tokens > float64(n)-1e-5 && tokens < float64(n)+1e-5 {
					continue
				}
				switch what := random.IntN(50); {
				case what == 0:
					per = 0.1 + 100*random.Float64()
					if err := ours.SetRate(per); err != nil {
						t.Fatal(err)
					}
					theirs.SetLimit(rate.Limit(per))
				case what == 1 && ours.Stats().Queued == 0: // the two libraries differ for requests that wait
					burst = 1 + random.IntN(20)
					if err := ours.SetBurst(burst); err != nil {
						t.Fatal(err)
					}
					theirs.SetBurst(burst)
				case what < 5 && reserve:
					a, b := ours.ReserveN(n), theirs.ReserveN(time.Now(), n)
					if a.OK() != b.OK() {
						t.Fatalf("step %d: reserve %d: %v, x/time/rate says %v", i, n, a.OK(), b.OK())
					}
					if diff := (a.Delay() - b.Delay()).Abs(); diff > time.Microsecond {
						t.Fatalf("step %d: delay %v, x/time/rate says %v", i, a.Delay(), b.Delay())
					}
					if a.Delay() > 0 {
						delayed++
					}
				default:
					got, want := ours.AllowN(n), theirs.AllowN(time.Now(), n)
					if got != want {
						t.Fatalf("step %d: allow %d: %v, x/time/rate says %v (%g tokens, ours %g)", i, n, got, want, theirs.Tokens(), ours.Tokens())
					}
					if got {
						allowed++
					}
				}
			}
			coretest.Check(t, allowed >= steps/10 && (!reserve || delayed >= steps/100), "%d allowed, %d delayed of %d: that shows little", allowed, delayed, steps)
		})
	}
}

// Our limiter gives the answers of throttled's GCRA, to the nanosecond, for rates whose
// interval is a whole number of nanoseconds. throttled has no other rates.
func TestLimiterDoesWhatThrottledDoes(t *testing.T) {
	steps := 50_000
	if testing.Short() {
		steps = 10_000
	}
	synctest.Test(t, func(t *testing.T) {
		for _, per := range []int{1, 10, 1000, 1_000_000} {
			for _, burst := range []int{1, 5, 20} {
				random := rand.New(rand.NewPCG(uint64(per), uint64(burst)))
				store, err := memstore.NewCtx(10)
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(per), MaxBurst: burst - 1})
				if err != nil {
					t.Fatal(err)
				}
				ours, err := ratelimit.New(core.Rate{PerSecond: float64(per), Burst: burst}, ratelimit.Options{IgnoreCommands: true})
				if err != nil {
					t.Fatal(err)
				}
				interval, allowed := time.Second/time.Duration(per), 0
				for i := range steps / 12 {
					wait := time.Duration(random.Int64N(int64(interval)))
					if random.IntN(2) == 0 {
						wait = interval / time.Duration(1+random.IntN(4)) // exactly when a request becomes possible
					}
					time.Sleep(wait)
					n := 1 + random.IntN(burst+1)
					if random.IntN(3) > 0 {
						n = 1
					}
					limited, _, err := theirs.RateLimitCtx(t.Context(), "key", n)
					if err != nil {
						t.Fatal(err)
					}
					if got := ours.AllowN(n); got == limited {
						t.Fatalf("%d per second, burst %d, step %d: allow %d: %v, throttled says %v", per, burst, i, n, got, !limited)
					}
					if !limited {
						allowed++
					}
				}
				ours.Close()
				coretest.Check(t, allowed >= steps/12/10, "%d per second, burst %d: only %d allowed", per, burst, allowed)
			}
		}
	})
}
