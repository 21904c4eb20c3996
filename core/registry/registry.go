package registry

import (
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/ephemeralgo/ephemeral/core"
)

// ErrNotRegistered is returned by [Get] for a name that is unknown. Use [errors.Is];
// the message says which name that is, and which there are.
var ErrNotRegistered = errors.New("registry: not registered")

// A Registry holds coordinators by name. Make one with [New] and close it, which
// closes what it has made. It owns no goroutine. All methods, and the functions that
// take a Registry, are safe for concurrent use, also from bodies and handlers.
type Registry struct {
	tree   *tree
	parent *Registry // nil for the uppermost

	// The lock of the tree guards the rest.
	registered map[string]*registration
	making     map[string]*creation
	made       map[string]instance
	below      map[*Registry]struct{} // scopes that have made something and are not closed
	completed  bool                   // makes no more
	closed     bool
}

var _ core.Lifecycle = (*Registry)(nil)

// New makes an empty registry.
func New() *Registry {
	return newRegistry(&tree{inside: make(map[string]*creation)}, nil)
}

// Register says how to make the coordinator of a name. Create is called when [Get]
// first asks for it, and again if it returned an error; what it makes is shared by
// all. Register returns an error if the name is taken or create is nil, and
// [core.ErrClosed] after Close.
//
// Create may Get others. It should get those that its coordinator will pass work on
// to, rather than leave that to the work: [Registry.Drain] relies on their having
// been made before.
func Register[C core.Inspector](r *Registry, name string, create func() (C, error)) error {
	if create == nil {
		return missing(name)
	}
	return r.register(name, &registration{create: func(*Registry) (core.Inspector, error) {
		return checked(create())
	}})
}

// RegisterScoped is [Register] for a coordinator of which each [Registry.Scope] has
// one of its own. Create is given the scope, or the registry itself, that it makes
// it for; Get the others from there.
func RegisterScoped[C core.Inspector](r *Registry, name string, create func(scope *Registry) (C, error)) error {
	if create == nil {
		return missing(name)
	}
	return r.register(name, &registration{scoped: true, create: func(scope *Registry) (core.Inspector, error) {
		return checked(create(scope))
	}})
}

func missing(name string) error {
	return fmt.Errorf("registry: %q needs a function that makes it, not nil", name)
}

// checked is the result of a function that makes a coordinator.
func checked[C core.Inspector](c C, err error) (core.Inspector, error) {
	if err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("made without an error, but nil")
	}
	return c, nil
}

// Get returns the coordinator of a name. If it has not been made, Get makes it;
// whoever asks for it at the same time waits, and gets the same.
//
// It returns [ErrNotRegistered], an error with that of the function that makes it,
// or an error if what was made is not a C. If the making of it needs itself, over
// any number of others, the error is a [core.ErrWouldDeadlock]; goroutines that the
// function has started are not recognised. After Close it is [core.ErrClosed], and
// after Complete and Drain as well if it would have to be made.
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

// Names lists the names that Get knows, in alphabetical order.
func (r *Registry) Names() []string {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	return r.names()
}

// All walks the coordinators that have been made, those of open scopes included, in
// the order in which they were made, as of the start of the loop.
func (r *Registry) All() iter.Seq2[string, core.Inspector] {
	return func(yield func(string, core.Inspector) bool) {
		for _, in := range r.all() {
			if !yield(in.name, in.coordinator) {
				return
			}
		}
	}
}

// Scope returns a registry below this one: it finds what is registered here, and
// shares it unless it was registered with [RegisterScoped]. Of that it has its own,
// and Complete, Flush, Drain and Close of the scope are about its own only. Those of
// this registry are about its scopes, too. Once it has made something this registry
// keeps it alive, until it is closed.
func (r *Registry) Scope() *Registry { return newRegistry(r.tree, r) }
