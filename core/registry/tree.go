package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// tree is what a registry and the scopes below it share.
type tree struct {
	mu     sync.Mutex
	made   uint64               // coordinators so far
	inside map[string]*creation // the innermost one of each goroutine
}

type registration struct {
	scoped bool
	create func(*Registry) (core.Inspector, error)
}

type instance struct {
	number      uint64 // in the order in which they were made
	name        string
	coordinator core.Inspector
}

func newRegistry(t *tree, parent *Registry) *Registry {
	return &Registry{
		tree:       t,
		parent:     parent,
		registered: make(map[string]*registration),
		making:     make(map[string]*creation),
		made:       make(map[string]instance),
		below:      make(map[*Registry]struct{}),
	}
}

func (r *Registry) register(name string, reg *registration) error {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	if r.isClosed() {
		return core.ErrClosed
	}
	if taken, _ := r.find(name); taken != nil {
		return fmt.Errorf("registry: %q is registered already", name)
	}
	r.registered[name] = reg
	return nil
}

// all lists what r and the scopes below have made, in the order in which it was made.
func (r *Registry) all() []instance {
	r.tree.mu.Lock()
	all := r.gather(nil)
	r.tree.mu.Unlock()
	slices.SortFunc(all, func(a, b instance) int { return cmp.Compare(a.number, b.number) })
	return all
}

// The lock is held for what follows.

func (r *Registry) gather(all []instance) []instance {
	all = slices.AppendSeq(all, maps.Values(r.made))
	for scope := range r.below {
		all = scope.gather(all)
	}
	return all
}

// find returns how to make the coordinator of a name for r, and the registry it
// belongs to; nil if nobody has said.
func (r *Registry) find(name string) (reg *registration, owner *Registry) {
	for at := r; at != nil; at = at.parent {
		if reg = at.registered[name]; reg != nil {
			if reg.scoped {
				return reg, r
			}
			return reg, at
		}
	}
	return nil, nil
}

// add keeps a coordinator that has been made.
func (r *Registry) add(name string, c core.Inspector) {
	r.tree.made++
	r.made[name] = instance{r.tree.made, name, c}
	for at := r; at.parent != nil; at = at.parent {
		at.parent.below[at] = struct{}{}
	}
}

func (r *Registry) isClosed() bool {
	return r.closed || r.parent != nil && r.parent.isClosed()
}

func (r *Registry) isCompleted() bool {
	return r.completed || r.parent != nil && r.parent.isCompleted()
}

func (r *Registry) names() []string {
	var names []string
	for at := r; at != nil; at = at.parent {
		names = slices.AppendSeq(names, maps.Keys(at.registered))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
