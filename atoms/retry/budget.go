package retry

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// BudgetOptions configure a [Budget]. The zero value is the default, which is that of
// the RetryBudget of Finagle: a fifth of the calls that succeed, and ten per second.
type BudgetOptions struct {
	// Ratio is how many retries every call that succeeds pays for; 0 means 0.2,
	// negative none.
	Ratio float64
	// PerSecond is how many retries every second pays for, so that there are some
	// while little or nothing succeeds; 0 means 10, negative none.
	PerSecond float64
	// Burst is how many retries can be saved up, and how many there are at the
	// beginning; 0 means 100.
	Burst int
}

// A Budget bounds the retries of all calls of one or several Retriers, so that retries
// do not multiply the load on what has failed under it. It is a bucket of tokens, as
// in the RetryBudget of Finagle and in gRPC's retry throttling: a retry takes a token, a
// call that succeeds and the time that passes put a part of a token back, and while there
// is no token left calls give up after their first attempt, with [ErrBudget].
//
// Make one with [NewBudget]. It is safe for concurrent use, starts nothing and needs
// no closing. With a full bucket, as it is while all goes well, it costs a call a few
// nanoseconds.
type Budget struct {
	ratio int64 // per success, in parts
	rate  float64
	most  int64
	base  time.Time

	parts atomic.Int64

	mu      sync.Mutex
	at      time.Duration // since base: the time up to here has been paid for
	rest    float64       // the fraction of a part that has not
	granted uint64
	denied  uint64
}

// token is how many parts a token has.
const token = 1_000_000

// BudgetStats are the counters of a [Budget], read together, so that at every instant
//
//	Granted + Denied = all retries that were asked for and were not cancelled
type BudgetStats struct {
	Tokens  float64 `json:"tokens"`  // retries that it can pay for now
	Granted uint64  `json:"granted"` // retries that it has paid for
	Denied  uint64  `json:"denied"`  // retries that it has not paid for
}

// LogValue groups the counters by their JSON names.
func (s BudgetStats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s BudgetStats) String() string { return core.StatsString(s) }

// resolved returns the options with defaults, or says what is wrong with them.
func (o BudgetOptions) resolved() (BudgetOptions, error) {
	const most = 1_000_000
	number := func(field string, v *float64, preset float64) error {
		if *v = max(0, cmp.Or(*v, preset)); *v <= most {
			return nil
		}
		return fmt.Errorf("retry: BudgetOptions.%s is %v: it must be a number up to %d", field, *v, most)
	}
	o.Burst = cmp.Or(o.Burst, 100)
	if o.Burst < 0 || o.Burst > most {
		return o, fmt.Errorf("retry: BudgetOptions.Burst is %d: it must be between 1 and %d", o.Burst, most)
	}
	return o, cmp.Or(number("Ratio", &o.Ratio, 0.2), number("PerSecond", &o.PerSecond, 10))
}

// NewBudget makes a budget, or says what is wrong with the options.
func NewBudget(opts BudgetOptions) (*Budget, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	b := &Budget{
		ratio: int64(math.Round(opts.Ratio * token)),
		rate:  opts.PerSecond,
		most:  int64(opts.Burst) * token,
		base:  time.Now(),
	}
	b.parts.Store(b.most)
	return b, nil
}

// Stats returns the counters.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn()
	return BudgetStats{float64(b.parts.Load()) / token, b.granted, b.denied}
}

// deposit puts back the parts for a call that succeeded.
func (b *Budget) deposit() { b.add(b.ratio) }

// add adds parts, up to the most there can be.
func (b *Budget) add(parts int64) {
	for {
		have := b.parts.Load()
		if have >= b.most || b.parts.CompareAndSwap(have, min(b.most, have+parts)) {
			return
		}
	}
}

// earn puts back the parts for the time since it was last called. mu is held.
func (b *Budget) earn() {
	now := time.Since(b.base)
	earned := b.rate*token*(now-b.at).Seconds() + b.rest
	b.at = now
	whole := math.Floor(min(earned, float64(b.most)))
	b.rest = min(earned-whole, 1) // a full bucket keeps no more than that
	b.add(int64(whole))
}

// withdraw takes a token, if there is one.
func (b *Budget) withdraw() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn()
	if b.parts.Load() < token { // only this method, which has the lock, takes any
		b.denied++
		return false
	}
	b.parts.Add(-token)
	b.granted++
	return true
}

// refund puts back the token of a retry that was not made.
func (b *Budget) refund() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.granted--
	b.add(token)
}
