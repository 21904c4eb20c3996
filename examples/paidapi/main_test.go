package main

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The API notices one call too many.
func TestFakeAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var api fakeAPI
		var calls sync.WaitGroup
		for range maxCalls + 1 {
			calls.Go(func() { api.Ask(t.Context(), question{"acme", "short"}) })
		}
		calls.Wait()
		if api.broken == 0 {
			t.Error("not noticed")
		}
	})
}

// The contract is kept, also by second calls and while the API is busy. People do not wait
// for the batch. Everything is answered.
func TestContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		start := time.Now()
		if err := run(t.Context(), &out, &fakeAPI{}); err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`^operation \d+ is pending: .*key "(acme|globex)" has its next token in \d+.*
people waited for [12]?\d\dms at most, the batch for [6-9]\d\dms
29 answers, [1-9] second calls, the contract was broken 0 times
$`)
		if !want.Match(out.Bytes()) || time.Since(start) > 2*time.Second {
			t.Errorf("after %v:\n%s", time.Since(start), &out)
		}
	})
}
