package registry

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// creation is one call of a function that makes a coordinator. The function may Get other
// coordinators, and then waits for their creations. Each creation knows the last creation
// for which it waited, so that no circle of creations waits for ever. The tree's lock
// guards number and wants; made and err may be read when done is closed.
type creation struct {
	name   string
	number uint64    // its place in the order in which coordinators were made; 0: not made yet
	wants  *creation // the last creation for which it waited; nil: none

	done chan struct{}
	made core.Inspector
	err  error
}

func (r *Registry) get(name string) (core.Inspector, error) {
	r.tree.mu.Lock()
	c, begin, err := r.join(name)
	r.tree.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if begin != nil {
		begin()
	}
	<-c.done
	return c.made, c.err
}

// join returns the creation of a name. If it is new, join also returns the registration
// that begins it. The lock is held.
func (r *Registry) join(name string) (c *creation, begin func(), err error) {
	reg, owner := r.find(name)
	switch {
	case r.isClosed():
		return nil, nil, core.ErrClosed
	case reg == nil:
		return nil, nil, fmt.Errorf("%w: %q; there are %q", ErrNotRegistered, name, r.names())
	}
	c = owner.creations[name]
	switch {
	case c != nil && c.number > 0: // the coordinator has been made
		return c, nil, nil
	case c == nil && owner.isCompleted():
		return nil, nil, core.ErrClosed
	}
	me := goroutine()
	outer := r.tree.inside[me]
	if c == nil {
		c = &creation{name: name, done: make(chan struct{})}
		owner.creations[name], r.tree.inside[me] = c, c
		begin = func() { owner.create(reg, c, me, outer) }
	}
	if outer != nil {
		if err := outer.circle(c); err != nil {
			return nil, nil, err
		}
		outer.wants = c
	}
	return c, begin, nil
}

// circle returns an error if c waits for o, directly or not: then o must not wait for c.
func (o *creation) circle(c *creation) error {
	names := []string{fmt.Sprintf("%q", o.name)}
	for at := c; at != nil; at = at.wants {
		names = append(names, fmt.Sprintf("%q", at.name))
		if at == o {
			return fmt.Errorf("registry: %s: %w", strings.Join(names, " needs "), core.ErrWouldDeadlock)
		}
	}
	return nil
}

// create calls the function that makes the coordinator, inside the creation outer, if there
// is one. If the function panics, other callers that wait get an error.
func (r *Registry) create(reg *registration, c *creation, me string, outer *creation) {
	made, err := core.Inspector(nil), fmt.Errorf("registry: the function that makes %q has panicked", c.name)
	defer func() {
		r.tree.mu.Lock()
		delete(r.tree.inside, me)
		if outer != nil {
			r.tree.inside[me] = outer
		}
		if err == nil && r.isCompleted() { // the coordinator comes too late
			err = core.ErrClosed
			defer made.Close()
		}
		if c.err = err; err == nil {
			c.made = made
			r.keep(c)
		} else {
			delete(r.creations, c.name)
		}
		r.tree.mu.Unlock()
		close(c.done)
	}()
	made, err = reg.create(r)
}

// goroutine identifies the calling goroutine: the first words of its stack trace are
// "goroutine 7". Functions that make coordinators get no context, so a context cannot say
// which creation calls.
func goroutine() string {
	var trace [64]byte
	id, _, _ := bytes.Cut(trace[:runtime.Stack(trace[:], false)], []byte(" ["))
	return string(id)
}
