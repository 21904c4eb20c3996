package registry

import (
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/ephemeralgo/ephemeral/core"
)

// ErrNotRegistered is returned by [Get] for an unknown name. Use [errors.Is]; the error
// has the name and lists the known names.
var ErrNotRegistered = errors.New("registry: not registered")

// A Registry holds coordinators by name. Make one with [New] and close it, which closes
// the coordinators that it has made. It owns no goroutine. All methods, and the functions
// that take a Registry, are safe for concurrent use, also from bodies and handlers.
type Registry struct {
	tree   *tree
	parent *Registry // nil if the registry is not a scope

	// The lock of the tree guards the following.
	registered map[string]*registration
	creations  map[string]*creation   // creations that have not failed
	below      map[*Registry]struct{} // scopes that have made coordinators and are not closed
	completed  bool                   // makes no more
	closed     bool
}

var _ core.Lifecycle = (*Registry)(nil)

// New makes an empty registry.
func New() *Registry {
	return newRegistry(&tree{inside: make(map[string]*creation)}, nil)
}

// Register sets the function that makes the coordinator of a name. The first [Get] of the
// name calls it, and the next one calls it again if it returned an error. All callers
// share the coordinator. Register returns an error if the name is taken or create is nil,
// and [core.ErrClosed] after Close.
//
// Create may Get other coordinators. It should Get the coordinators to which its own
// coordinator passes work: [Registry.Drain] relies on the order in which they were made.
func Register[C core.Inspector](r *Registry, name string, create func() (C, error)) error {
	var of func(*Registry) (C, error)
	if create != nil {
		of = func(*Registry) (C, error) { return create() }
	}
	return register(r, name, false, of)
}

// RegisterScoped is [Register], but each [Registry.Scope] gets its own coordinator.
// Create gets the scope, or the registry, to which the coordinator belongs. It
// should Get other coordinators from there.
func RegisterScoped[C core.Inspector](r *Registry, name string, create func(scope *Registry) (C, error)) error {
	return register(r, name, true, create)
}

func register[C core.Inspector](r *Registry, name string, scoped bool, create func(*Registry) (C, error)) error {
	if create == nil {
		return fmt.Errorf("registry: %q needs a function that makes it, not nil", name)
	}
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	if r.isClosed() {
		return core.ErrClosed
	}
	if taken, _ := r.find(name); taken != nil {
		return fmt.Errorf("registry: %q is registered already", name)
	}
	r.registered[name] = &registration{scoped, func(scope *Registry) (core.Inspector, error) {
		c, err := create(scope)
		if err != nil {
			return nil, fmt.Errorf("registry: %q: %w", name, err)
		}
		if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, fmt.Errorf("registry: the function that makes %q has returned nil without an error", name)
		}
		return c, nil
	}}
	return nil
}

// Get returns the coordinator of a name. If it has not been made, Get makes it; other
// callers at the same time wait for it and get the same one.
//
// It returns [ErrNotRegistered], or an error that wraps the error of the function, or an
// error if the coordinator is not a C. If the function needs its own coordinator,
// directly or through others, the error is a [core.ErrWouldDeadlock]. Goroutines that the
// function has started are not recognised. After Close the error is [core.ErrClosed], and
// after Complete, Drain and Stop as well if the coordinator has not been made.
func Get[C core.Inspector](r *Registry, name string) (C, error) {
	var none C
	made, err := r.get(name)
	if err != nil {
		return none, err
	}
	c, ok := made.(C)
	if !ok {
		return none, fmt.Errorf("registry: %q is a %T, not a %v", name, made, reflect.TypeFor[C]())
	}
	return c, nil
}

// All yields the coordinators that exist when the loop starts, those of open scopes
// included, in the order in which they were made.
func (r *Registry) All() iter.Seq2[string, core.Inspector] {
	return func(yield func(string, core.Inspector) bool) {
		for _, c := range r.all() {
			if !yield(c.name, c.made) {
				return
			}
		}
	}
}

// Scope returns a registry below this one. It shares the coordinators that are registered
// here. For names registered with [RegisterScoped], and for names registered with the
// scope, it has its own coordinators. Complete, Flush, Drain, Stop and Close of the scope
// end only its own coordinators. The methods of this registry end the coordinators of its
// scopes, too. Once the scope has made a coordinator, this registry keeps it alive until
// the scope is closed.
func (r *Registry) Scope() *Registry { return newRegistry(r.tree, r) }
