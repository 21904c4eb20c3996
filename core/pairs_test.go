package core_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options and calls meet in pairs and triples: each program has a few of them. For each program, the counters add up,
// and limits and orders hold. An item that could start never lacks room. Every wait ends, or Explain says why. Callbacks
// are called once, and nothing is left. A program that fails may hang or end the process, so programs run in a child
// process. The test removes elements from a failing program while it still fails.
//
// EPHEMERAL_PAIRS=1h searches for an hour, with other programs each time; EPHEMERAL_PAIRS=SEED+1m searches for a minute
// from that seed; EPHEMERAL_PAIRS=SEED or SEED/1,2,3 runs one program, or these elements of it.
func TestPairs(t *testing.T) {
	if spec := os.Getenv("EPHEMERAL_PAIRS_CHILD"); spec != "" {
		runPairs(t, parsePairsSpec(t, spec))
		return
	}
	spec := pairsSpec{span: time.Duration(long.Often(10_000, 250)) * time.Millisecond}
	if text := os.Getenv("EPHEMERAL_PAIRS"); text != "" {
		spec = parsePairsSpec(t, text)
	}
	out, failed := spec.child(t)
	if !failed {
		t.Logf("%s programs passed", lastPairsSeed(out))
		return
	}
	if spec.span > 0 {
		spec.seed, _ = strconv.ParseUint(lastPairsSeed(out), 10, 64)
		spec.span = 0
	}
	t.Fatalf("%s", spec.shrunk(t))
}

// pairsSpec says what a child runs.
type pairsSpec struct {
	seed uint64
	span time.Duration // how long to search from seed on; 0: only this seed
	kept []int
}

func parsePairsSpec(t *testing.T, text string) (s pairsSpec) {
	var err error
	if span, spanErr := time.ParseDuration(text); spanErr == nil && span > 0 {
		return pairsSpec{seed: uint64(time.Now().UnixMicro()), span: span}
	}
	seed, kept, _ := strings.Cut(text, "/")
	seed, span, search := strings.Cut(seed, "+")
	if search {
		s.span, err = time.ParseDuration(span)
	}
	for number := range strings.SplitSeq(kept, ",") {
		if n, err := strconv.Atoi(number); err == nil {
			s.kept = append(s.kept, n)
		}
	}
	var seedErr error
	s.seed, seedErr = strconv.ParseUint(seed, 10, 64)
	if err := cmp.Or(err, seedErr); err != nil {
		t.Fatalf("EPHEMERAL_PAIRS is %q: %v", text, err)
	}
	return s
}

func (s pairsSpec) String() string {
	text := strconv.FormatUint(s.seed, 10)
	if s.span > 0 {
		text += "+" + s.span.String()
	}
	if s.kept != nil {
		text += "/" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.kept), " ", ","), "[]")
	}
	return text
}

// pairsRepeats is how often one program is tried, as goroutines may be faster or slower.
const pairsRepeats = 20

// runPairs is what a child does. It says first which seed it tries.
func runPairs(t *testing.T, spec pairsSpec) {
	patience := 10 * time.Second // a program takes a millisecond
	if spec.span == 0 {
		patience = 2 * time.Second
	}
	start := time.Now()
	for n := 0; spec.span > 0 && time.Since(start) < spec.span || spec.span == 0 && n < pairsRepeats; n++ {
		seed := spec.seed
		if spec.span > 0 {
			seed += uint64(n)
			fmt.Println(seed)
		} else {
			fmt.Fprintln(os.Stderr, pairsRun)
		}
		hangs := time.AfterFunc(patience, func() {
			fmt.Fprintln(os.Stderr, "hangs")
			stacks := make([]byte, 1<<16)
			for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
				if bytes.Contains(stack, []byte("core.(")) { // of the library
					fmt.Fprintf(os.Stderr, "%s\n\n", stack)
				}
			}
			os.Exit(2)
		})
		synctest.Test(t, func(*testing.T) { newPairsWorld(newPairsProgram(seed, spec.kept), spec.span == 0).run() })
		hangs.Stop()
	}
}

// pairsRun separates the runs of one program.
const pairsRun = "-- run"

// child runs a child.
func (s pairsSpec) child(t *testing.T) (out string, failed bool) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPairs$", "-test.timeout="+(s.span+time.Minute).String())
	cmd.Env = append(os.Environ(), "EPHEMERAL_PAIRS_CHILD="+s.String())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if s.span > 0 {
		return stdout.String(), err != nil
	}
	runs := strings.Split(stderr.String(), pairsRun)
	return runs[len(runs)-1] + stdout.String(), err != nil
}

// lastPairsSeed is the last number in the output of a child.
func lastPairsSeed(out string) (last string) {
	for line := range strings.Lines(out) {
		if _, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64); err == nil {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

// shrunk leaves elements out of a failing program while it still fails, and describes what is left.
func (s pairsSpec) shrunk(t *testing.T) string {
	out, failed := s.child(t)
	if !failed {
		return fmt.Sprintf("seed %d failed, but not again: EPHEMERAL_PAIRS=%v", s.seed, s)
	}
	all := s.kept
	if all == nil {
		for n := range newPairsProgram(s.seed, nil).elements {
			all = append(all, n+1)
		}
	}
	s.kept = all
	end := time.Now().Add(time.Minute)
	for size := (len(s.kept) + 1) / 2; size > 0 && time.Now().Before(end); {
		smaller := false
		for i := 0; i < len(s.kept) && time.Now().Before(end); {
			try := pairsSpec{seed: s.seed, kept: slices.Concat([]int{}, s.kept[:i], s.kept[min(len(s.kept), i+size):])}
			if text, failed := try.child(t); failed {
				s, out, smaller = try, text, true
			} else {
				i += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	if len(out) > 6000 {
		out = out[:6000] + "..."
	}
	return fmt.Sprintf("seed %d fails with elements %v\nEPHEMERAL_PAIRS=%v go test -run 'TestPairs$' .\n%v\n%s", s.seed, s.kept, s, newPairsProgram(s.seed, s.kept), out)
}

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
	settles  bool // a call from outside: the next call waits until nothing moves
	span     time.Duration
	patience time.Duration // deadline of its context; 0: none
	target   int           // says which operation
	name     string        // of a signal
	lane     int
	class    int
	key      string
	body     []*pairsCall // of the item
	after    []*pairsCall // calls calls in the function of Suspend
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
	{"Shadow", func(p *pairsProgram) any { p.opts.Shadow = &core.Limits{Limit: 1}; return 1 }},
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
	p.opts = core.Options{Name: "pairs", MaxConcurrency: 2, Sink: signals.NewSink(signals.SinkOptions{})}
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

// draw draws n calls. Depth bounds how deep items enqueue items.
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

// String lists the elements with their numbers. Each kind of call uses some of what is shown.
func (p *pairsProgram) String() string {
	var b strings.Builder
	b.WriteString(strings.Join(p.texts, "\n") + "\n")
	var list func(calls []*pairsCall, indent string)
	list = func(calls []*pairsCall, indent string) {
		for _, c := range calls {
			fmt.Fprintf(&b, "%3d%s%s %s (lane %d, class %d, key %q, span %v, patience %v, target %d, settles %v)\n",
				c.number, indent, c.kind, c.name, c.lane, c.class, c.key, c.span, c.patience, c.target, c.settles)
			list(c.body, indent+"  ")
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
