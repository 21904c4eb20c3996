package registry

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// tree is the state that a registry and the scopes below it share.
type tree struct {
	mu     sync.Mutex
	made   uint64               // number of coordinators made so far
	inside map[string]*creation // the innermost creation of each goroutine
}

type registration struct {
	scoped bool
	create func(*Registry) (core.Inspector, error)
}

func newRegistry(t *tree, parent *Registry) *Registry {
	return &Registry{
		tree:       t,
		parent:     parent,
		registered: make(map[string]*registration),
		creations:  make(map[string]*creation),
		below:      make(map[*Registry]struct{}),
	}
}

// all lists the coordinators that r and the scopes below have made, in that order.
func (r *Registry) all() []*creation {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	all := r.gather(nil)
	slices.SortFunc(all, func(a, b *creation) int { return cmp.Compare(a.number, b.number) })
	return all
}

// The lock is held in the following methods.

func (r *Registry) gather(all []*creation) []*creation {
	for _, c := range r.creations {
		if c.number > 0 {
			all = append(all, c)
		}
	}
	for scope := range r.below {
		all = scope.gather(all)
	}
	return all
}

// find returns the registration of a name for r, and the registry of its coordinator; nil
// if there is none.
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

// keep records that a coordinator has been made.
func (r *Registry) keep(c *creation) {
	r.tree.made++
	c.number = r.tree.made
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
