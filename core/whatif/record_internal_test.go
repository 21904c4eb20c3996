package whatif

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
)

// Whatever an engine says, what a recording writes can be read.
func TestExtremesCanBeRead(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64 / 2
	for _, e := range []tape.Event{
		{Started: true, At: 5, Wait: -1, Run: 2},
		{Started: true, At: 5, Wait: 1, Run: -2, Away: 3},
		{Started: true, At: least, Wait: most, Run: most, Away: most, Cost: most, Calls: most, More: -most},
		{Kind: tape.Alive, At: most / 2, Wait: -most, Cost: -1, Away: -1},
		{Kind: tape.GateMoved, Shut: true, At: most / 2, Since: least / 2, Expires: never},
		{Kind: tape.GateMoved, Shut: true, At: 7, Since: most, Expires: -most / 2},
	} {
		c := coder{began: 3}
		file := c.append([]byte(magic+"\x02{}"), &tape.Event{ID: 1, At: 4})
		file = c.append(c.append(file, &e), &tape.Event{ID: 2, At: 9})
		trace, err := Read(bytes.NewReader(binary.AppendUvarint(append(file, ends), 2<<60)))
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		if n := len(trace.operations) + len(trace.gates); n != 3 || trace.operations[len(trace.operations)-1].At > maxTime {
			t.Errorf("%+v: got %d events, want 3: %+v", e, n, trace.operations)
		}
		if _, err := Run(trace, trace.Options); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// A trace whose operations run for too long for the clock of a simulation is an error.
func TestRunsForEver(t *testing.T) {
	trace := &Trace{Options: core.Options{MaxConcurrency: 1}}
	for range 3000 {
		trace.operations = append(trace.operations, tape.Event{Started: true, Run: maxTime})
	}
	if _, err := Run(trace, trace.Options); err == nil || !strings.HasPrefix(err.Error(), "whatif: ") {
		t.Errorf("got %v, want an error", err)
	}
}

// The cost of an operation is recorded, whether or not it has shadows.
func TestCostsWithShadows(t *testing.T) {
	shadow := &core.Limits{Limit: 1, CostRate: core.Rate{PerSecond: 1, Burst: 1}}
	for _, o := range []core.Options{
		{Classes: []core.Class{{Name: "a"}}},
		{Classes: []core.Class{{Name: "a", Shadow: shadow}}},
		{Classes: []core.Class{{Name: "a"}}, Shadow: shadow},
	} {
		o.MaxConcurrency = 2
		trace := recording(t, o, false, func(l load) {
			for n := range 600 {
				l.Class("a").Cost(n%3).Enqueue(context.Background(), item{span: time.Millisecond})
			}
		})
		for i, e := range trace.operations {
			if e.Cost != int64(i%3) {
				t.Errorf("operation %d has cost %d, want %d: %+v", i, e.Cost, i%3, o)
				break
			}
		}
	}
}

// A move of a gate for which there is no place is told by the next look.
func TestMoveWithoutAPlace(t *testing.T) {
	full := tape.New()
	for range tape.Capacity {
		full.Next()
	}
	gate := tape.Event{Gate: 3, Shut: true}
	full.Moved(gate)
	full.Take(make([]tape.Event, 0, 1), nil)
	full.Moved(gate)
	full.Moved(gate)
	if events := full.Take(nil, nil); len(events) != 1 || events[0].Kind != tape.GateMoved || full.Dropped != 1 {
		t.Errorf("got %+v, and %d dropped", events, full.Dropped)
	}
}

// writer calls a function for each Write.
type writer func() error

func (w writer) Write(b []byte) (int, error) { return len(b), w() }

// badName is a type of the user with an embedded Control.
type badName struct{ core.Control }

func (badName) Name() string { panic("no name") }

// An error of the writer ends the recording, and one that blocks does not keep it going. Nothing counts as written that is not.
func TestBadWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{}))
		if _, err := Record(badName{c.Control}, io.Discard); err == nil {
			t.Error("a coordinator without a name is recorded")
		}
		again := func() *Recording {
			r, err := Record(c, io.Discard)
			if err != nil {
				t.Fatal("the last recording goes on: ", err)
			}
			return r
		}
		again().Close()

		down := errors.New("down")
		r := core.Must(Record(c, writer(func() error { return down })))
		synctest.Wait()
		again().Close()
		c.Do(t.Context(), 1)
		if err := r.Close(); !errors.Is(err, down) || r.Counts() != (Counts{}) {
			t.Errorf("got %v and %+v", err, r.Counts())
		}

		block := make(chan bool)
		r = core.Must(Record(c, writer(func() error { <-block; return nil })))
		c.Do(t.Context(), 1)
		go r.Close()
		synctest.Wait()
		last := again()
		c.Do(t.Context(), 1)
		close(block)
		if err := r.Close(); err != nil || r.Counts().Operations != 1 {
			t.Errorf("got %v and %+v", err, r.Counts())
		}

		c.Close()
		c.Enqueue(t.Context(), 1) // is no operation that had no room
		if last.Close(); last.Counts().Operations != 1 {
			t.Errorf("got %+v, want one operation", last.Counts())
		}
	})
}
