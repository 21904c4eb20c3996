package whatif

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
)

// A Recording writes what happens in a coordinator, until Close. Its methods are safe for concurrent use.
type Recording struct {
	engine tape.Engine
	name   string
	to     io.Writer
	stop   chan struct{}
	once   sync.Once
	done   chan struct{} // closed when everything is written
	alive  []tape.Event  // at the end, and
	ended  int64         // when that was; both are set before stop is closed

	mu     sync.Mutex
	counts Counts
	err    error
}

// Counts are what a [Recording] has written so far.
type Counts struct {
	Operations uint64 // that have ended, or were refused
	Dropped    uint64 // operations and moves of gates that were left out, because the writer was slower than the coordinator
}

// Record begins to write what happens in a coordinator to w. It returns an error if c is not a coordinator of core,
// or a type with an embedded [core.Control], or if it is recorded already. An operation is written when it ends.
// Those that are alive at the end of the recording are written by Close.
//
// A recording costs 4 MB and a goroutine. While times are at most a second, it takes 10 to 21 bytes of w for each
// operation, 8 more with a key, and 4 or more with a cost, a charge or a suspension. Operations do not wait for w.
// While w is so slow that 16,000 operations end during one call of Write, further ones are left out and counted.
// After an error of w the recording is over. Closing the coordinator does not end it. Record does not close w.
func Record(c core.Inspector, w io.Writer) (*Recording, error) {
	if core.IsNil(c) || core.IsNil(w) {
		return nil, errors.New("whatif: Record needs a coordinator and a writer, not nil")
	}
	name, err := guard.Value("Name of a coordinator", c.Name) // before it has a tape: c may be a type of the user
	if err != nil {
		return nil, fmt.Errorf("whatif: %w", err)
	}
	t := tape.New()
	half := make(chan struct{})
	spare := t.Take(make([]tape.Event, 0, tape.Capacity), half)
	engine, ok := tape.Record(c, t)
	if !ok {
		return nil, fmt.Errorf("whatif: %q is recorded already, or is not a coordinator of core", name)
	}
	r := &Recording{engine: engine, name: name, to: w, stop: make(chan struct{}), done: make(chan struct{})}
	go r.run(half, spare)
	return r, nil
}

// Counts returns what was written so far.
func (r *Recording) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Close ends the recording and writes the rest. It waits for w, so do not call it in Write. It returns the first error of w;
// after that error, nothing was recorded. Further calls return the same.
func (r *Recording) Close() error {
	r.once.Do(func() {
		r.alive, r.ended = r.engine.Stop()
		close(r.stop)
	})
	<-r.done
	return r.err
}

func (r *Recording) run(half chan struct{}, spare []tape.Event) {
	defer close(r.done)
	head, err := json.Marshal(header{Options: r.engine.Options.(core.Options), Keyed: r.engine.Keyed})
	r.fail(err)
	r.write(append(binary.AppendUvarint([]byte(magic), uint64(len(head))), head...))
	c := coder{began: r.engine.Now}
	var bytes []byte
	put := func(events []tape.Event, dropped uint64) {
		bytes = bytes[:0]
		operations := uint64(0)
		for i := range events {
			if bytes = c.append(bytes, &events[i]); events[i].Kind != tape.GateMoved {
				operations++
			}
		}
		if r.write(bytes); r.err != nil {
			return
		}
		r.mu.Lock()
		r.counts.Operations += operations
		r.counts.Dropped = max(dropped, r.counts.Dropped)
		r.mu.Unlock()
	}
	for going := true; going; {
		if r.err != nil {
			r.engine.Stop()
			return
		}
		select {
		case <-half:
			half = make(chan struct{})
			events, dropped := r.engine.Take(spare, half)
			put(events, dropped)
			spare = events
		case <-r.stop:
			going = false
		}
	}
	put(r.engine.Take(spare, nil))
	put(r.alive, 0)
	r.write(binary.AppendUvarint(binary.AppendUvarint([]byte{ends}, uint64(r.ended-r.engine.Now)), r.Counts().Dropped))
}

// write writes unless there was an error. The writer is code of the user.
func (r *Recording) write(b []byte) {
	if r.err != nil {
		return
	}
	var err error
	r.fail(guard.Do("Write of a recording", func() { _, err = r.to.Write(b) }))
	r.fail(err)
}

func (r *Recording) fail(err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("whatif: cannot write what happens in %q: %w", r.name, err)
	}
}
