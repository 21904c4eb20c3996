package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// pairsProgram is a random program: a few options and kinds of calls, drawn from two tables, and calls of these kinds
// from outside, from bodies and from callbacks. Its elements (options, calls) are numbered, so that some can be left out.
type pairsProgram struct {
	opts           core.Options
	keyed, futures bool // futures: a ResultCoordinator; otherwise a Coordinator, which has groups
	texts          []string
	calls          []*pairsCall // from outside
	done, final    []*pairsCall // from OnDone and OnFinalized
	elements       int

	random *rand.Rand
	kept   []int // elements; nil: all
	kinds  []string
}

// pairsCall is a call. Each kind uses some of the fields.
type pairsCall struct {
	number   int
	kind     string
	settles  bool // from outside: what is next waits until nothing moves
	span     time.Duration
	patience time.Duration // of its context; 0: endless
	target   int           // says which operation
	name     string        // of a signal
	lane     int
	class    int
	key      string
	body     []*pairsCall // of the item
	after    []*pairsCall // in the function of Suspend
}

type pairsOption struct {
	name string
	set  func(p *pairsProgram) any
}

func pairsPick[V any](p *pairsProgram, values ...V) V { return values[p.random.IntN(len(values))] }

// pairsMillis draws a number of milliseconds; a negative one means none.
func pairsMillis(p *pairsProgram, values ...int) time.Duration {
	return max(-1, time.Duration(pairsPick(p, values...))*time.Millisecond)
}

// The options. Each function sets one, and returns its value for the reader.
var pairsOptions = []pairsOption{
	{"OnDone", func(p *pairsProgram) any { p.opts.OnDone = func(core.Snapshot) {}; return "" }},
	{"Lanes", func(p *pairsProgram) any {
		p.opts.Lanes = []core.Lane{
			{Name: "hot", Limit: pairsPick(p, 0, 1), Depth: pairsPick(p, 0, 0, -1, 1), CancelOn: pairsPick(p, "", "stop.lane")},
			{Name: "slow", Limit: pairsPick(p, 0, 1, 2), DeferOn: pairsPick(p, "", "wait.lane")},
		}
		return p.opts.Lanes
	}},
	{"Classes", func(p *pairsProgram) any {
		p.opts.Classes = []core.Class{{Name: "heavy", Limit: pairsPick(p, 1, 2), Depth: pairsPick(p, 0, 0, -1, 2)}, {Name: "light"}}
		return p.opts.Classes
	}},
	{"keys", func(p *pairsProgram) any {
		p.keyed = true
		p.opts.MaxPerKey = pairsPick(p, 0, 0, 2)
		return p.opts.MaxPerKey
	}},
	{"MaxConcurrency", func(p *pairsProgram) any { p.opts.MaxConcurrency = pairsPick(p, 1, 4); return p.opts.MaxConcurrency }},
	{"MaxQueued", func(p *pairsProgram) any { p.opts.MaxQueued = pairsPick(p, -1, 1, 3); return p.opts.MaxQueued }},
	{"MaxSuspended", func(p *pairsProgram) any { p.opts.MaxSuspended = pairsPick(p, -1, 1); return p.opts.MaxSuspended }},
	{"MaxTracked", func(p *pairsProgram) any { p.opts.MaxTracked = pairsPick(p, -1, 1, 2); return p.opts.MaxTracked }},
	{"MaxFailed", func(p *pairsProgram) any { p.opts.MaxFailed = pairsPick(p, -1, 1); return p.opts.MaxFailed }},
	{"MaxAge", func(p *pairsProgram) any { p.opts.MaxAge = pairsMillis(p, -1, 5); return p.opts.MaxAge }},
	{"DropOldest", func(p *pairsProgram) any { p.opts.DropOldest = true; return true }},
	{"Timeout", func(p *pairsProgram) any { p.opts.Timeout = pairsMillis(p, 3); return p.opts.Timeout }},
	{"CancelOn", func(p *pairsProgram) any { p.opts.CancelOn = "stop"; return "stop" }},
	{"DeferOn", func(p *pairsProgram) any {
		p.opts.DeferOn, p.opts.ResumeOn, p.opts.MaxDefer = "wait", pairsPick(p, "", "go"), pairsMillis(p, -1, 0, 20)
		return fmt.Sprintf("wait, ResumeOn %q, MaxDefer %v", p.opts.ResumeOn, p.opts.MaxDefer)
	}},
	{"DrainOn", func(p *pairsProgram) any { p.opts.DrainOn = "drain"; return "drain" }},
}

// newPairsProgram draws a program. The draws do not depend on which elements are kept.
func newPairsProgram(seed uint64, kept []int) *pairsProgram {
	p := &pairsProgram{random: rand.New(rand.NewPCG(seed, 24)), kept: kept, kinds: []string{"Enqueue", "Enqueue", "TryEnqueue", "Sleep"}}
	p.opts = core.Options{Name: "pairs", MaxConcurrency: 2, Sink: core.NewSink(core.SinkOptions{})}
	p.futures = p.random.IntN(2) == 0
	for _, i := range p.random.Perm(len(pairsOptions))[:p.random.IntN(7)] {
		before, keyed := p.opts, p.keyed
		value := pairsOptions[i].set(p)
		if p.keeps() {
			p.texts = append(p.texts, fmt.Sprintf("%3d  %s %+v", p.elements, pairsOptions[i].name, value))
		} else {
			p.opts, p.keyed = before, keyed
		}
	}
	for _, i := range p.random.Perm(len(pairsKinds))[:p.random.IntN(7)] {
		p.kinds = append(p.kinds, pairsKinds[i].name)
	}
	p.calls = p.draw(4+p.random.IntN(16), 2)
	p.done = p.draw(p.random.IntN(3), 1)
	p.final = p.draw(p.random.IntN(3)*p.random.IntN(2), 1)
	return p
}

// keeps numbers the next element, and reports whether it is kept.
func (p *pairsProgram) keeps() bool {
	p.elements++
	return p.kept == nil || slices.Contains(p.kept, p.elements)
}

// draw draws so many calls. Depth bounds how deep items enqueue items.
func (p *pairsProgram) draw(n, depth int) (calls []*pairsCall) {
	inside := depth < 2
	for range n {
		c := &pairsCall{
			kind: pairsPick(p, p.kinds...), settles: p.random.IntN(4) > 0,
			span: pairsMillis(p, 0, 1, 2, 5), patience: pairsMillis(p, 0, 0, 0, 3), target: p.random.IntN(4),
			name: pairsPick(p, "stop", "stop.lane", "wait", "wait.lane", "go", "drain"),
			lane: p.random.IntN(2), class: p.random.IntN(3), key: pairsPick(p, "x", "x", "y", ""),
		}
		if inside && p.random.IntN(3) == 0 {
			c.kind = "Sleep" // so that slots are taken
		}
		keeps := p.keeps()
		c.number = p.elements
		if depth > 0 {
			c.body = p.draw(p.random.IntN(3), depth-1)
			if c.kind == "Suspend" {
				c.after = p.draw(p.random.IntN(2), depth-1)
			}
		}
		if keeps {
			calls = append(calls, c)
		}
	}
	return calls
}

// String lists the elements with their numbers.
func (p *pairsProgram) String() string {
	var b strings.Builder
	b.WriteString(strings.Join(p.texts, "\n") + "\n")
	var list func(calls []*pairsCall, indent string)
	list = func(calls []*pairsCall, indent string) {
		for _, c := range calls {
			fmt.Fprintf(&b, "%3d%s%s", c.number, indent, c.kind)
			item := slices.Contains([]string{"Enqueue", "TryEnqueue", "Do", "Future", "Group"}, c.kind)
			switch {
			case item:
				if len(p.opts.Lanes) > 0 {
					fmt.Fprintf(&b, " lane %s", p.opts.Lanes[c.lane].Name)
				}
				if n := c.class; n < len(p.opts.Classes) {
					fmt.Fprintf(&b, " class %s", p.opts.Classes[n].Name)
				}
				if p.keyed {
					fmt.Fprintf(&b, " key %q", c.key)
				}
			case strings.Contains(c.kind, "Raise") || strings.Contains(c.kind, "Hold") || c.kind == "Retract":
				fmt.Fprintf(&b, " %s", c.name)
			}
			fmt.Fprintf(&b, " (span %v, patience %v, target %d, settles %v)\n", c.span, c.patience, c.target, c.settles)
			if item {
				list(c.body, indent+"  ")
			}
			list(c.after, indent+"  ")
		}
	}
	b.WriteString("from outside:\n")
	list(p.calls, "  ")
	b.WriteString("in OnDone:\n")
	list(p.done, "  ")
	b.WriteString("in OnFinalized:\n")
	list(p.final, "  ")
	return b.String()
}
