package core_test

import (
	"bytes"
	"cmp"
	"fmt"
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
)

// Options and calls meet in pairs and triples: each program has a few of them. Whatever the program, the books balance,
// limits and orders hold, no item lacks room that could start, every wait ends or Explain says why, callbacks are called
// once, and nothing is left. A program that fails may hang or end the process, so programs run in a child process. Of a
// failing one, elements are left out while it still fails.
//
// EPHEMERAL_PAIRS=1h searches for an hour, with other programs each time; EPHEMERAL_PAIRS=SEED+1m searches for a minute
// from that seed; EPHEMERAL_PAIRS=SEED or SEED/1,2,3 runs one program, or these elements of it.
func TestPairs(t *testing.T) {
	if spec := os.Getenv("EPHEMERAL_PAIRS_CHILD"); spec != "" {
		runPairs(t, parsePairsSpec(t, spec))
		return
	}
	spec := pairsSpec{span: time.Duration(core.Often(30_000, 3_000)) * time.Millisecond}
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
	span time.Duration // of a search, from seed on; 0: only that one
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
