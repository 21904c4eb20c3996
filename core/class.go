// This file decides what items of a class share.

package core

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
)

// A Class is a kind of items of one coordinator that share what is scarce: slots, calls and
// cost per second, or a service that may be down. It counts items in all lanes together. An
// item that waits for its class waits in the queue, without a slot, and Explain says why. See
// [Options.Classes], and [Control.SetClass] for changes.
type Class struct {
	// Name is how [Coordinator.Class] finds it; case matters.
	//
	//ephemeral:defines class
	Name string
	// Limit is how many operations of the class run at once; they also count for
	// [Options.MaxConcurrency]. 0 means no limit for the class.
	Limit int
	// Depth is how many of its items may be pending in each lane before Enqueue waits and
	// TryEnqueue refuses; 0 means [Lane].Depth or, without lanes, [Options.MaxQueued];
	// negative means no queue. Each class has its own queue in each lane.
	Depth int

	// Rate is how many operations of the class start each second. The zero Rate means no
	// limit. After a quiet time Burst of them start at once, by default 20; [AtMost] has no burst. When tokens come, the item that is next in the highest lane gets them. While it
	// lacks tokens, items of the class in lower lanes do not start, even if they need less;
	// [Options.Ageing] bounds that. An item takes its tokens when it starts, and gives none
	// back when it ends.
	Rate Rate
	// CostRate is how much the started operations of the class may cost each second, such as
	// bytes; see [Coordinator.Cost]. The zero Rate means no limit. An item that costs more
	// than the Burst starts when the bucket is full. Then the bucket is below zero, and
	// later items wait until it has filled up again.
	CostRate Rate

	// CancelOn refuses items of this class, and DeferOn defers them, as in a [Lane].
	// [Options.ResumeOn] also ends the deferral by the DeferOn of the class.
	//
	//ephemeral:pattern
	CancelOn, DeferOn string
	// MaxDefer is the longest time that raised signals defer an item of this class; 0
	// means [Options.MaxDefer], negative no limit.
	MaxDefer time.Duration
	// TrialOn is a gate for a service that may work again: while a matching signal is
	// present, at most Trials operations of the class run at once. Trials 0 means 1; it
	// must not be negative.
	//
	//ephemeral:pattern
	TrialOn string
	Trials  int

	// Shadow is stricter limits that only count: they say what would happen if they were in force. See [Limits].
	// Nil means none.
	Shadow *Limits
}

// ClassStats are counters of one class; see [Stats]. Items without a class are not
// counted here. So, summed over the classes, Pending <= Stats.Pending and Running <=
// Stats.Running.
type ClassStats struct {
	Name    string `json:"name"`
	Pending int    `json:"pending"`
	Running int    `json:"running"`
	Limit   int    `json:"limit"` // how many may run at once; during a trial it can be lower than Class.Limit; 0: no limit

	Calls RateStats `json:"calls,omitzero"` // of Class.Rate
	Cost  RateStats `json:"cost,omitzero"`  // of Class.CostRate
	Next  time.Time `json:"next,omitzero"`  // when the next item of the class has its tokens; zero: no item waits for tokens

	Shadow ShadowStats `json:"shadow,omitzero"` // of Class.Shadow
}

// RateStats are the counters of one rate of a class. Without that rate they are zero.
// Used = tokens taken - tokens given back.
type RateStats struct {
	PerSecond float64 `json:"perSecond"`
	Burst     int     `json:"burst"`
	Used      int64   `json:"used"` // tokens taken since the rate was set, without those given back
	Debt      float64 `json:"debt"` // tokens that were taken before they came; 0: none
}

// rateOf returns a rate with the default burst; the zero Rate means no rate.
func rateOf(r Rate, what string) (Rate, error) {
	if r == (Rate{}) {
		return r, nil
	}
	if r.PerSecond == 0 {
		return r, fmt.Errorf("core: %s: burst is %d, but there is no rate", what, r.Burst)
	}
	resolved, err := r.Resolved()
	if err != nil {
		return r, fmt.Errorf("core: %s: %w", what, err)
	}
	return resolved, nil
}

// resolved returns the class with defaults, or an error. It does not check the name and the limit.
func (c Class) resolved(what string, maxDefer time.Duration) (Class, error) {
	var err, costErr, deferErr, trialErr, shadowErr error
	c.Rate, err = rateOf(c.Rate, what+": Rate")
	c.CostRate, costErr = rateOf(c.CostRate, what+": CostRate")
	if c.MaxDefer != 0 && c.DeferOn == "" {
		deferErr = fmt.Errorf("core: %s: MaxDefer is %v, but there is no DeferOn that it would bound", what, c.MaxDefer)
	}
	switch {
	case c.Trials < 0:
		trialErr = fmt.Errorf("core: %s: Trials is %d, but must not be negative", what, c.Trials)
	case c.Trials > 0 && c.TrialOn == "":
		trialErr = fmt.Errorf("core: %s: Trials is %d, but there is no TrialOn", what, c.Trials)
	}
	c.MaxDefer, c.Trials = cmp.Or(c.MaxDefer, maxDefer), max(1, c.Trials)
	c.Shadow, shadowErr = c.Shadow.stricter(what, Limits{c.Limit, c.Rate, c.CostRate})
	return c, errors.Join(err, costErr, deferErr, trialErr, shadowErr)
}

// changed returns c with the limit, the rates and the shadow of to. Each other field of to must be zero or
// equal the field of c. Otherwise changed returns an error.
func (c Class) changed(to Class) (Class, error) {
	what := fmt.Sprintf("SetClass of %q", c.Name)
	rest := Class{Name: c.Name, Depth: c.Depth, CancelOn: c.CancelOn, DeferOn: c.DeferOn, MaxDefer: c.MaxDefer, TrialOn: c.TrialOn, Trials: c.Trials}
	same := Class{
		Name: to.Name, Depth: cmp.Or(to.Depth, c.Depth),
		CancelOn: cmp.Or(to.CancelOn, c.CancelOn), DeferOn: cmp.Or(to.DeferOn, c.DeferOn), MaxDefer: cmp.Or(to.MaxDefer, c.MaxDefer),
		TrialOn: cmp.Or(to.TrialOn, c.TrialOn), Trials: cmp.Or(to.Trials, c.Trials),
	}
	var errs [5]error
	if same != rest {
		errs[0] = fmt.Errorf("core: %s: only Limit, Rate, CostRate and Shadow can change", what)
	}
	if to.Limit < 0 {
		errs[1] = fmt.Errorf("core: %s: limit is %d, but must not be negative", what, to.Limit)
	}
	rest.Limit = to.Limit
	rest.Rate, errs[2] = rateOf(to.Rate, what+": Rate")
	rest.CostRate, errs[3] = rateOf(to.CostRate, what+": CostRate")
	rest.Shadow, errs[4] = to.Shadow.stricter(what, Limits{rest.Limit, rest.Rate, rest.CostRate})
	return rest, errors.Join(errs[:]...)
}

// limits are what the scheduler needs of the class.
func (c *Class) limits() sched.Limits {
	return sched.Limits{Limit: c.Limit, Rate: c.Rate, CostRate: c.CostRate}
}

// clampTokens returns n, or the nearest number of tokens that a bucket can take at once.
func clampTokens(n int) int64 { return max(-bucket.MaxBurst, min(int64(n), bucket.MaxBurst)) }

// checkCost returns an error if a cost is not valid.
func checkCost(n int64) error {
	if n < 0 || n > bucket.MaxBurst {
		return fmt.Errorf("core: cost is %d, but must be from 0 to 2^40", n)
	}
	return nil
}
