package retry

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// BudgetOptions configure a [Budget]. The zero value is the default. As in the RetryBudget of
// Finagle, the default is a fifth of the successful calls, and ten retries per second. No
// value may be more than 1,000,000.
type BudgetOptions struct {
	// Ratio is how many retries each successful call adds. 0 means 0.2, negative none.
	Ratio float64
	// PerSecond is how many retries each second adds, even while no call succeeds. 0 means
	// 10, negative none.
	PerSecond float64
	// Burst is how many retries the budget can hold. It is full at the beginning. 0 means
	// 100; a negative value is an error.
	Burst int
}

// A Budget limits the retries of all Retriers that share it. So retries do not multiply the
// load on a service that fails because of load. It is a bucket of tokens, as in the
// RetryBudget of Finagle and in the retry throttling of gRPC. Each retry takes a token.
// Successful calls and the time put tokens back. If an attempt fails while there is no token,
// the call gives up with [ErrBudget].
//
// Make one with [NewBudget]. It is safe for concurrent use, has no goroutine and needs no
// closing. While the bucket is full, it costs a successful call a few nanoseconds.
type Budget struct {
	ratio int64 // parts that each success adds
	rate  float64
	most  int64
	base  time.Time

	parts atomic.Int64

	mu   sync.Mutex
	at   time.Duration // time of the last call of earn, since base
	rest float64       // the fraction of a part that earn kept for later
}

// token is how many parts a token has.
const token = 1_000_000

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

// tokens is the number of tokens in the bucket.
func (b *Budget) tokens() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn()
	return float64(b.parts.Load()) / token
}

// deposit adds the parts for a successful call.
func (b *Budget) deposit() { b.add(b.ratio) }

// add adds parts, but not above most.
func (b *Budget) add(parts int64) {
	for {
		have := b.parts.Load()
		if have >= b.most || b.parts.CompareAndSwap(have, min(b.most, have+parts)) {
			return
		}
	}
}

// earn adds the parts for the time since its last call. mu is held.
func (b *Budget) earn() {
	now := time.Since(b.base)
	earned := b.rate*token*(now-b.at).Seconds() + b.rest
	b.at = now
	whole := math.Floor(min(earned, float64(b.most)))
	b.rest = min(earned-whole, 1) // if the bucket is full, more than 1 is left: this is dropped
	b.add(int64(whole))
}

// withdraw takes a token, if there is one.
func (b *Budget) withdraw() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earn()
	if b.parts.Load() < token { // only this method takes parts, so the lock is enough
		return false
	}
	b.parts.Add(-token)
	return true
}

// refund puts back the token of a retry that was not made.
func (b *Budget) refund() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(token)
}
