package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
)

// A Report says what has happened, and what would have happened with other options.
type Report struct {
	Trace               *Trace
	Options             core.Options // of the simulation, with defaults
	Recorded, Simulated Result
}

// Result is what happened to the operations of a trace.
type Result struct {
	Waits   []Waits   // of all operations, then by lane, then by class
	Dropped int       // for newer ones: see Options.DropOldest
	Forced  int       // started in spite of a deferral, after MaxDefer; only of a simulation
	Starved int       // keys of which an operation waited for StarvedAfter
	Busy    []float64 // how many slots were taken on average, in each sixtieth of the recording
}

// StarvedAfter is how long an operation waits whose key counts as starved.
const StarvedAfter = 10 * time.Second

// Waits are how long operations waited from Enqueue to their start.
type Waits struct {
	Lane, Class            string // "": all
	Started                int
	Refused                int // by a gate, or for lack of room
	P50, P95, P99, Longest time.Duration
}

// parts is how many parts of a recording Busy has.
const parts = 60

// counting counts what happens to operations.
type counting struct {
	span    int64
	waits   map[[2]int][]time.Duration // by lane and class; -1: all
	refused map[[2]int]int
	starved map[uint64]bool
	result  Result
}

func newCounting(t *Trace) *counting {
	return &counting{max(1, int64(t.Span)), map[[2]int][]time.Duration{}, map[[2]int]int{}, map[uint64]bool{}, Result{Busy: make([]float64, parts)}}
}

// add counts an operation. Times are those of the trace.
func (c *counting) add(e *tape.Event, lane, class uint8, started bool, wait int64, as tape.Kind) {
	at := [][2]int{{-1, -1}, {int(lane), -1}, {-1, int(class)}}
	if class == 0 {
		at = at[:2]
	}
	if wait >= int64(StarvedAfter) && e.Key != 0 {
		c.starved[e.Key] = true
	}
	for _, place := range at {
		switch {
		case started:
			c.waits[place] = append(c.waits[place], time.Duration(wait))
		case as == tape.Refused || as == tape.Rejected:
			c.refused[place]++
		}
	}
	if as == tape.Dropped {
		c.result.Dropped++
	}
	if started {
		c.busy(e.At+wait, e.At+wait+e.Run-e.Away)
	}
}

// busy counts a slot that is taken from then to then.
func (c *counting) busy(from, to int64) {
	part := max(1, c.span/parts)
	for i := max(0, from/part); i < parts && i*part < to; i++ {
		c.result.Busy[i] += float64(min(to, (i+1)*part)-max(from, i*part)) / float64(part)
	}
}

func (c *counting) done(o core.Options) Result {
	row := func(place [2]int, lane, class string) {
		w := Waits{Lane: lane, Class: class, Refused: c.refused[place]}
		if all := c.waits[place]; len(all) > 0 {
			slices.Sort(all)
			of := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] }
			w.Started, w.P50, w.P95, w.P99, w.Longest = len(all), of(50), of(95), of(99), of(100)
		}
		c.result.Waits = append(c.result.Waits, w)
	}
	row([2]int{-1, -1}, "", "")
	for i, l := range o.Lanes {
		row([2]int{i, -1}, l.Name, "")
	}
	for i, class := range o.Classes {
		row([2]int{-1, 1 + i}, "", class.Name)
	}
	c.result.Starved = len(c.starved)
	return c.result
}

func (s *simulation) result() Result {
	c := newCounting(s.trace)
	for i := range s.operations {
		o := &s.operations[i]
		c.add(o.event, o.Lane, o.Class, o.started > 0, max(0, o.started-o.Enqueued), o.ended)
	}
	c.result.Forced = s.forced
	return c.done(s.opts)
}

// recorded is what happened while the trace was recorded.
func (t *Trace) recorded() Result {
	c := newCounting(t)
	for i := range t.operations {
		e := &t.operations[i]
		c.add(e, e.Lane, e.Class, e.Started, e.Wait, e.Kind)
	}
	return c.done(t.was)
}

// String is one screen for a person.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations in %v, %d not recorded. Limit: recorded %d, simulated %d.\n", r.Trace.Operations, round(r.Trace.Span), r.Trace.Dropped, r.Trace.was.MaxConcurrency, r.Options.MaxConcurrency)
	if changed := r.changed(); len(changed) > 0 {
		fmt.Fprintf(&b, "Changed: %s.\n", strings.Join(changed, ", "))
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "%-20s %-9s %9s %9s %9s %9s %9s %9s  p99\n", "waits", "", "started", "refused", "p50", "p95", "p99", "longest")
	longest := max(1, r.Recorded.Waits[0].P99, r.Simulated.Waits[0].P99)
	for _, w := range r.Simulated.Waits {
		longest = max(longest, w.P99)
	}
	line := func(name, what string, w Waits) {
		bar := strings.Repeat("#", int(min(20, 20*float64(w.P99)/float64(longest))))
		fmt.Fprintf(&b, "%-20.20s %-9s %9d %9d %9v %9v %9v %9v  %s\n", name, what, w.Started, w.Refused, round(w.P50), round(w.P95), round(w.P99), round(w.Longest), bar)
	}
	shown := 0
	for _, now := range r.Simulated.Waits {
		i := slices.IndexFunc(r.Recorded.Waits, func(w Waits) bool { return w.Lane == now.Lane && w.Class == now.Class })
		if shown == 7 || i < 0 || now.Started+now.Refused == 0 {
			continue
		}
		name := cmp.Or(now.Lane, now.Class, "all")
		switch {
		case now.Lane != "":
			name = "lane " + name
		case now.Class != "":
			name = "class " + name
		}
		line(name, "recorded", r.Recorded.Waits[i])
		line("", "simulated", now)
		shown++
	}
	b.WriteByte('\n')
	most := max(1, slices.Max(r.Recorded.Busy), slices.Max(r.Simulated.Busy))
	for _, x := range []struct {
		what string
		Result
	}{{"recorded", r.Recorded}, {"simulated", r.Simulated}} {
		fmt.Fprintf(&b, "%-9s %s busy slots, at most %.1f\n", x.what, bars(x.Busy, most), slices.Max(x.Busy))
	}
	fmt.Fprintf(&b, "\nkeys that waited %v: recorded %d, simulated %d. Dropped: %d, %d.\n", StarvedAfter, r.Recorded.Starved, r.Simulated.Starved, r.Recorded.Dropped, r.Simulated.Dropped)
	b.WriteString("Durations do not react to load: each operation runs for as long as it was recorded, whatever runs beside it.\n")
	return b.String()
}

// changed says which limits and rates of lanes and classes are others than recorded.
func (r Report) changed() (all []string) {
	add := func(what string, was, is any) {
		if was != is {
			all = append(all, fmt.Sprintf("%s %v -> %v", what, was, is))
		}
	}
	for _, is := range r.Options.Lanes {
		for _, was := range r.Trace.was.Lanes {
			if was.Name == is.Name {
				add("limit of lane "+is.Name, was.Limit, is.Limit)
			}
		}
	}
	rate := func(r core.Rate) string { return fmt.Sprintf("%v/s (burst %d)", r.PerSecond, r.Burst) }
	for _, is := range r.Options.Classes {
		for _, was := range r.Trace.was.Classes {
			if was.Name == is.Name {
				add("limit of class "+is.Name, was.Limit, is.Limit)
				add("rate of class "+is.Name, rate(was.Rate), rate(is.Rate))
				add("cost rate of class "+is.Name, rate(was.CostRate), rate(is.CostRate))
			}
		}
	}
	return all
}

// bars draws numbers as bars.
func bars(numbers []float64, most float64) string {
	const heights = " ▁▂▃▄▅▆▇█"
	text := make([]rune, len(numbers))
	for i, n := range numbers {
		text[i] = []rune(heights)[int(min(8, max(0, 8*n/most+0.5)))]
	}
	return string(text)
}

// round leaves three digits.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
