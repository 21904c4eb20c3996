package coretest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Kill is what [KillLoop] runs.
type Kill struct {
	// Child writes until it is killed. It calls ack with each item as soon as it promises
	// to keep the item. An item is one line of text. Dir is the directory of the test,
	// and round counts from 0.
	Child func(dir string, round int, ack func(item string))
	// Check opens what the child has left, and compares it with the items that all
	// children so far have acknowledged, in order.
	Check func(dir string, acked []string) error
	// Rounds is how often a child is killed; 0 means 3, or 100 if EPHEMERAL_LONG is set and
	// the race detector is off.
	Rounds int
}

const (
	// killWithin bounds the random time from the first item to the kill. For every fourth child the
	// time counts from its start, so some are killed while they open their files.
	killWithin = 50 * time.Millisecond

	killEnv   = "EPHEMERAL_KILL_CHILD" // round and directory
	ackPrefix = "acknowledged:"
)

// KillLoop checks that what was promised survives SIGKILL. It runs the test again as a child
// process, in which KillLoop does not return. It kills the child at a random moment, calls
// Check, and begins again with the same files. It returns the first error of Check. The
// caller must be the test function. Before the call, it must do nothing that a child should
// not do.
//
// SIGKILL ends a process, not the system: a file that was written and not synced is still there.
func KillLoop(t *testing.T, k Kill) error {
	t.Helper()
	if env, ok := os.LookupEnv(killEnv); ok {
		var round int
		number, dir, _ := strings.Cut(env, " ")
		fmt.Sscan(number, &round)
		k.Child(dir, round, func(item string) { fmt.Fprintln(os.Stdout, ackPrefix+item) })
		select {} // the child has nothing left to do, and waits for its end
	}
	if k.Rounds == 0 {
		if k.Rounds = 3; os.Getenv("EPHEMERAL_LONG") != "" && !Race {
			k.Rounds = 100
		}
	}
	dir, acked := t.TempDir(), []string(nil)
	for round := range k.Rounds {
		acked = append(acked, k.run(t, dir, round)...)
		if err := k.Check(dir, acked); err != nil {
			return fmt.Errorf("coretest: after round %d, %d items acknowledged: %w", round, len(acked), err)
		}
	}
	t.Logf("%d items acknowledged in %d rounds", len(acked), k.Rounds)
	return nil
}

// run runs a child until it is killed, and returns what it has acknowledged.
func (k Kill) run(t *testing.T, dir string, round int) (acked []string) {
	test := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+test, "-test.timeout=1m")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", killEnv, round, dir))
	out, err := child.StdoutPipe()
	if err == nil {
		child.Stderr = os.Stderr
		err = child.Start()
	}
	if err != nil {
		t.Fatal("coretest: ", err)
	}
	kill := func() { time.AfterFunc(rand.N(killWithin), func() { _ = child.Process.Kill() }) }
	if round%4 == 3 {
		kill()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		item, ok := strings.CutPrefix(lines.Text(), ackPrefix)
		if !ok {
			continue // output of the testing package
		}
		if acked = append(acked, item); len(acked) == 1 {
			kill()
		}
	}
	_ = child.Wait() // it was killed
	return acked
}
