package bench

import (
	"slices"
	"sync"
	"time"
)

// Starts are the times from the call that adds an item until its body starts, sorted.
type Starts []time.Duration

// At is the time below which a part of them is, such as 0.99.
func (s Starts) At(part float64) time.Duration {
	return s[min(len(s)-1, int(part*float64(len(s))))]
}

// MeasureStarts adds single items to an empty queue for that long, first to ours and then to River. One node runs
// them. Our producer is a queue of its own, as in another process: the database tells the node that there is an item,
// as it does for River.
func MeasureStarts(perSecond int, span time.Duration) (ours, river Starts) {
	cold := func(p parcel) string { return p.Customer }
	return measureStarts(oursDurable(cold, 10), perSecond, span), measureStarts(throughRiver(10), perSecond, span)
}

func measureStarts(t *workTable, perSecond int, span time.Duration) (times Starts) {
	defer t.done()
	var mu sync.Mutex
	added := map[string]time.Time{}
	var left sync.WaitGroup
	t.began = func(p parcel) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		times = append(times, now.Sub(added[p.Customer]))
		left.Done()
	}
	defer t.serve()()
	warm := max(2, perSecond/10)
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for range warm + max(1, int(span.Seconds()*float64(perSecond))) {
		<-tick.C
		p := newParcel()
		left.Add(1)
		mu.Lock()
		added[p.Customer] = time.Now()
		mu.Unlock()
		go func() { check(t.insert([]parcel{p})) }() // a slow call does not hold up the next one
	}
	left.Wait()
	times = times[warm:]
	slices.Sort(times)
	return times
}
