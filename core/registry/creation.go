package registry

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// creation is a coordinator being made. The function that makes it may get others,
// and then waits until these are made, by itself or by somebody else. So that no
// circle is closed, creations know what they wait for. The tree's lock guards that;
// made and err may be read when done is closed.
type creation struct {
	name  string
	wants *creation // nil while it does not wait

	done chan struct{}
	made core.Inspector
	err  error
}

func (r *Registry) get(name string) (core.Inspector, error) {
	t := r.tree
	t.mu.Lock()
	reg, owner := r.find(name)
	if r.isClosed() {
		t.mu.Unlock()
		return nil, core.ErrClosed
	}
	if reg == nil {
		names := r.names()
		t.mu.Unlock()
		return nil, fmt.Errorf("%w: %q; there are %q", ErrNotRegistered, name, names)
	}
	if in, ok := owner.made[name]; ok {
		t.mu.Unlock()
		return in.coordinator, nil
	}
	c := owner.making[name]
	first := c == nil
	if first {
		if owner.isCompleted() {
			t.mu.Unlock()
			return nil, core.ErrClosed
		}
		c = &creation{name: name, done: make(chan struct{})}
		owner.making[name] = c
	}
	me := goroutine()
	outer := t.inside[me]
	if outer != nil {
		if err := outer.circle(c); err != nil {
			t.mu.Unlock()
			return nil, err
		}
		outer.wants = c
	}
	t.mu.Unlock()
	if first {
		owner.create(reg, c, me)
	}
	<-c.done
	if outer != nil {
		t.mu.Lock()
		outer.wants = nil
		t.mu.Unlock()
	}
	return c.made, c.err
}

// circle returns an error if c waits for o, over any number of others, so that o
// must not wait for c.
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

var errUnfinished = errors.New("the function that makes it has panicked")

// create calls the function that makes the coordinator. If it panics, whoever else
// waits gets an error.
func (r *Registry) create(reg *registration, c *creation, me string) {
	var (
		t    = r.tree
		made core.Inspector
		err  = errUnfinished
	)
	t.mu.Lock()
	outer := t.inside[me]
	t.inside[me] = c
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(r.making, c.name)
		delete(t.inside, me)
		if outer != nil {
			t.inside[me] = outer
		}
		late := err == nil && r.isCompleted()
		switch {
		case late:
			c.err = core.ErrClosed
		case err != nil:
			c.err = fmt.Errorf("registry: %q: %w", c.name, err)
		default:
			c.made = made
			r.add(c.name, made)
		}
		t.mu.Unlock()
		close(c.done)
		if late {
			made.Close()
		}
	}()
	made, err = reg.create(r)
}

// goroutine identifies the one that calls: the first words of its stack trace are
// "goroutine 7". Functions are called without a context that could tell; core asks
// the stack for the same reason.
func goroutine() string {
	var trace [64]byte
	id, _, _ := bytes.Cut(trace[:runtime.Stack(trace[:], false)], []byte(" ["))
	return string(id)
}
