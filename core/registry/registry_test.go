package registry_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/registry"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// bodies is the type of coordinator of most tests.
type bodies = *core.Coordinator[coretest.Body]

var errOnPurpose = errors.New("failed on purpose")

func quick(context.Context) error { return nil }

func plain() (bodies, error) { return core.NewCoordinator(coretest.Run, core.Options{}) }

func makeScoped(*registry.Registry) (bodies, error) { return plain() }

// needing makes a coordinator after it has got others.
func needing(r *registry.Registry, names ...string) func() (bodies, error) {
	return func() (bodies, error) {
		for _, name := range names {
			if _, err := registry.Get[bodies](r, name); err != nil {
				return nil, err
			}
		}
		return plain()
	}
}

func register(t testing.TB, r *registry.Registry, name string, create func() (bodies, error)) {
	t.Helper()
	if err := registry.Register(r, name, create); err != nil {
		t.Fatalf("Register(%q): got error %v", name, err)
	}
}

func registerScoped(t testing.TB, r *registry.Registry, name string, create func(*registry.Registry) (bodies, error)) {
	t.Helper()
	if err := registry.RegisterScoped(r, name, create); err != nil {
		t.Fatalf("RegisterScoped(%q): got error %v", name, err)
	}
}

func get(t testing.TB, r *registry.Registry, name string) bodies {
	t.Helper()
	c, err := registry.Get[bodies](r, name)
	if err != nil || c == nil {
		t.Fatalf("Get(%q): got %v and error %v, want a coordinator", name, c, err)
	}
	return c
}

func made(r *registry.Registry) string {
	var names []string
	for name := range r.All() {
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func mustMention(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, word := range append(words, "registry: ") {
		coretest.Check(t, strings.Contains(fmt.Sprint(err), word), "got error %q, want one that mentions %s", err, word)
	}
}

func mustBe(t testing.TB, what string, err, want error) {
	t.Helper()
	coretest.Check(t, errors.Is(err, want), "%s: got error %v, want %v", what, err, want)
}

func mustEqual[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		sink := signals.NewSink(signals.SinkOptions{})
		c := core.Must(core.NewCoordinator(coretest.Run, core.Options{Sink: sink}))
		r := registry.New().Scope()
		registerScoped(t, r, "", func(*registry.Registry) (bodies, error) { return c, nil })
		return coretest.Subject{
			Lifecycle: r,
			Submit: func(ctx context.Context, body coretest.Body) error {
				c, err := registry.Get[bodies](r, "")
				if err != nil {
					return err
				}
				_, err = c.Enqueue(ctx, body)
				return err
			},
			Pause: c.Pause, Resume: c.Resume,
			Sink: sink,
		}
	})
}

// Fault avoided: a second registration of a name is ignored silently.
func TestRegisterNeedsANewNameAndAFunction(t *testing.T) {
	r := registry.New()
	defer r.Close()
	register(t, r, "", plain)
	mustMention(t, registry.Register(r, "", plain), `""`, "already")
	mustMention(t, registry.RegisterScoped(r, "", makeScoped), `""`, "already")
	mustMention(t, registry.Register(r.Scope(), "", plain), `""`, "already")
	mustMention(t, registry.Register[bodies](r, "jobs", nil), `"jobs"`, "function")
	mustMention(t, registry.RegisterScoped[bodies](r, "jobs", nil), `"jobs"`, "function")
}

// All callers that ask meanwhile get the one coordinator. Fault avoided: a failed creation
// is remembered for ever.
func TestFailureIsForAllThatWaitAndNotRemembered(t *testing.T) {
	for says, fail := range map[string]func() (bodies, error){
		errOnPurpose.Error(): func() (bodies, error) { return nil, errOnPurpose },
		"nil":                func() (bodies, error) { return nil, nil },
		"panicked":           func() (bodies, error) { panic(errOnPurpose) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := registry.New()
			defer r.Close()
			calls := 0
			register(t, r, "flaky", func() (bodies, error) {
				calls++ // no lock: creations run one at a time
				time.Sleep(time.Second)
				if calls == 1 {
					return fail()
				}
				return plain()
			})
			go func() {
				defer func() {
					if got := recover(); (got == errOnPurpose) != (says == "panicked") {
						t.Errorf("recovered %v: a panic is that of the caller that asked first, and of no other", got)
					}
				}()
				registry.Get[bodies](r, "flaky")
			}()
			synctest.Wait()
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					_, err := registry.Get[bodies](r, "flaky")
					mustMention(t, err, `"flaky"`, says)
				})
			}
			all.Wait()
			for range 10 {
				all.Go(func() { get(t, r, "flaky") })
			}
			all.Wait()
			coretest.Check(t, calls == 2, "it was made %d times, want once for each round", calls)
		})
	}
}

// Fault avoided: the error does not say which name is unknown.
func TestUnknownName(t *testing.T) {
	r := registry.New()
	defer r.Close()
	register(t, r, "b", plain)
	register(t, r, "a", plain)
	scope := r.Scope()
	register(t, scope, "c", plain)
	_, err := registry.Get[bodies](scope, "d")
	mustMention(t, err, `"d"`, `["a" "b" "c"]`)
	mustBe(t, "error", err, registry.ErrNotRegistered)
}

func TestWrongType(t *testing.T) {
	r := registry.New()
	defer r.Close()
	register(t, r, "jobs", plain)
	_, err := registry.Get[*core.Coordinator[int]](r, "jobs")
	mustMention(t, err, `"jobs"`, "*core.Coordinator[int]", "coretest.Body]")
	if c, err := registry.Get[core.Inspector](r, "jobs"); err != nil || c.(bodies) != get(t, r, "jobs") {
		t.Errorf("as an interface: got %v and error %v, want the coordinator", c, err)
	}
}

func TestCircleIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry.New()
		defer r.Close()
		register(t, r, "self", needing(r, "self"))
		register(t, r, "a", needing(r, "b"))
		register(t, r, "b", needing(r, "c"))
		register(t, r, "c", needing(r.Scope(), "a"))
		for range 2 {
			_, err := registry.Get[bodies](r, "self")
			mustMention(t, err, `"self" needs "self"`)
			mustBe(t, "error", err, core.ErrWouldDeadlock)
			_, err = registry.Get[bodies](r, "a")
			mustMention(t, err, `"c" needs "a" needs "b" needs "c"`)
			mustBe(t, "error", err, core.ErrWouldDeadlock)
		}
	})
}

// Two goroutines each make a coordinator for which the other waits.
func TestCircleOfGoroutinesIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry.New()
		defer r.Close()
		slowly := func(needs string) func() (bodies, error) {
			return func() (bodies, error) {
				time.Sleep(time.Second)
				return needing(r, needs)()
			}
		}
		register(t, r, "a", slowly("b"))
		register(t, r, "b", slowly("a"))
		var all sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			all.Go(func() {
				_, err := registry.Get[bodies](r, name)
				mustBe(t, "error", err, core.ErrWouldDeadlock)
			})
		}
		all.Wait()
	})
}

// Waiting for the creation of another goroutine is no circle, even inside a creation.
func TestWaitingForOthersIsNoCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry.New()
		defer r.Close()
		register(t, r, "a", needing(r, "shared", "shared"))
		register(t, r, "b", needing(r, "shared"))
		register(t, r, "shared", func() (bodies, error) {
			time.Sleep(time.Second)
			return plain()
		})
		var all sync.WaitGroup
		for _, name := range []string{"a", "b", "shared", "a"} {
			all.Go(func() { get(t, r, name) })
		}
		all.Wait()
		if n := len(strings.Fields(made(r))); n != 3 {
			t.Errorf("made %q, want three", made(r))
		}
	})
}

func TestGetAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*registry.Registry){
		"Complete": func(r *registry.Registry) { r.Complete() },
		"Drain":    func(r *registry.Registry) { r.Drain(context.Background()) },
		"Stop":     func(r *registry.Registry) { r.Stop(context.Background()) },
		"Close":    func(r *registry.Registry) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := registry.New()
			register(t, r, "made", plain)
			register(t, r, "not made", plain)
			get(t, r, "made")
			scope := r.Scope()
			end(r)
			for _, r := range []*registry.Registry{r, scope} {
				_, err := registry.Get[bodies](r, "not made")
				mustBe(t, "what has not been made", err, core.ErrClosed)
				want := core.ErrClosed
				if name != "Close" {
					want = nil
				}
				if _, err := registry.Get[bodies](r, "made"); err != want {
					t.Errorf("what has been made: got error %v, want %v", err, want)
				}
			}
			if name == "Close" {
				mustBe(t, "Register", registry.Register(scope, "late", plain), core.ErrClosed)
			}
			r.Close()
		})
	}
}

// Fault avoided: disposing neither drains nor waits. A coordinator that is being made
// meanwhile is closed, too.
func TestClosedWhileMaking(t *testing.T) {
	for name, end := range map[string]func(*registry.Registry){
		"Complete": func(r *registry.Registry) { r.Complete() },
		"Close":    func(r *registry.Registry) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := registry.New()
				var c bodies
				register(t, r, "", func() (bodies, error) {
					time.Sleep(time.Second)
					var err error
					c, err = plain()
					return c, err
				})
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					_, err := registry.Get[bodies](r, "")
					mustBe(t, "error", err, core.ErrClosed)
				}()
				synctest.Wait()
				end(r)
				<-answered
				mustEqual(t, "what was made too late is closed", c.Stats().Closed, true)
				mustEqual(t, "made", made(r), "")
				r.Close()
			})
		})
	}
}

// stub is a coordinator that records its calls, and fails.
type stub struct {
	bodies
	name  string
	calls *[]string
}

func (s *stub) note(call string) error {
	*s.calls = append(*s.calls, call+" "+s.name)
	return fmt.Errorf("%s of %s: %w", call, s.name, errOnPurpose)
}

func (s *stub) Complete()                   { s.note("Complete") }
func (s *stub) Flush(context.Context) error { return s.note("Flush") }
func (s *stub) Drain(context.Context) error { return s.note("Drain") }
func (s *stub) Stop(context.Context) error  { return s.note("Stop") }
func (s *stub) Close() error                { return s.note("Close") }

// All are called, in the reverse order of their creation, even after errors.
func TestOrderAndErrors(t *testing.T) {
	var calls []string
	r := registry.New()
	for _, name := range []string{"a", "b", "c"} {
		if err := registry.Register(r, name, func() (*stub, error) { return &stub{name: name, calls: &calls}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"b", "c", "a"} {
		if _, err := registry.Get[*stub](r, name); err != nil {
			t.Fatal(err)
		}
	}
	for what, call := range map[string]func() error{
		"Complete": func() error { r.Complete(); return nil },
		"Flush":    func() error { return r.Flush(t.Context()) },
		"Drain":    func() error { return r.Drain(t.Context()) },
		"Stop":     func() error { return r.Stop(t.Context()) },
		"Close":    r.Close,
	} {
		calls = nil
		err := call()
		want := []string{what + " a", what + " c", what + " b"}
		if len(calls) < 3 || !slices.Equal(calls[len(calls)-3:], want) { // wouldDeadlock may have called it before
			t.Errorf("%s: got calls %q, want %q", what, calls, want)
		}
		if what == "Complete" {
			continue
		}
		mustBe(t, what, err, errOnPurpose)
		for _, name := range []string{"a", "b", "c"} {
			mustMention(t, err, fmt.Sprintf("registry: %q: %s of %s", name, what, name))
		}
	}
}

// Inside a body of one of several coordinators, Drain and Stop change none of them.
func TestDrainOrStopFromABodyChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry.New()
		register(t, r, "a", plain)
		register(t, r, "b", plain)
		a, b := get(t, r, "a"), get(t, r, "b")
		err := a.Do(t.Context(), func(ctx context.Context) error {
			return errors.Join(r.Drain(ctx), r.Stop(ctx), r.Flush(context.Background()))
		})
		mustMention(t, err, `"a"`)
		mustBe(t, "error", err, core.ErrWouldDeadlock)
		for _, c := range []bodies{a, b} {
			if err := c.Do(t.Context(), quick); err != nil {
				t.Errorf("after that: got error %v, want nil", err)
			}
		}
		r.Close()
	})
}

func TestScopesShareAndOwn(t *testing.T) {
	r := registry.New()
	defer r.Close()
	register(t, r, "shared", plain)
	registerScoped(t, r, "own", makeScoped)
	a, b := r.Scope(), r.Scope()
	coordinators := func(name string) (n int) {
		seen := map[bodies]bool{}
		for _, r := range []*registry.Registry{a, b, r, a} {
			seen[get(t, r, name)] = true
		}
		return len(seen)
	}
	mustEqual(t, "coordinators shared", coordinators("shared"), 1)
	mustEqual(t, "coordinators own", coordinators("own"), 3)
	mustEqual(t, "made by the scope", made(a), "own")
	mustEqual(t, "made by all", made(r), "shared own own own")
	for name := range r.All() {
		mustEqual(t, "the first", name, "shared")
		break
	}
	own := get(t, a, "own")
	a.Close()
	closed := []bool{own.Stats().Closed, get(t, b, "own").Stats().Closed, get(t, r, "shared").Stats().Closed}
	mustEqual(t, "closed: its own, that of another, the shared one", fmt.Sprint(closed), "[true false false]")
	mustEqual(t, "made by those that are left", made(r), "shared own own")
	_, err := registry.Get[bodies](a, "shared")
	mustBe(t, "Get of a closed scope", err, core.ErrClosed)
}

// A coordinator that a scope makes for itself gets its other parts from the same scope.
func TestScopedNeedsScoped(t *testing.T) {
	r := registry.New()
	defer r.Close()
	inner := make(map[bodies]bodies)
	registerScoped(t, r, "outer", func(scope *registry.Registry) (bodies, error) {
		c, err := plain()
		inner[c] = get(t, scope, "inner")
		return c, err
	})
	registerScoped(t, r, "inner", makeScoped)
	for _, scope := range []*registry.Registry{r, r.Scope(), r.Scope().Scope()} {
		coretest.Check(t, inner[get(t, scope, "outer")] == get(t, scope, "inner"), "got the inner one of another scope")
	}
}

// Closing a registry closes the coordinators of its scopes, and of their scopes.
func TestCloseReachesScopes(t *testing.T) {
	r := registry.New()
	registerScoped(t, r, "own", makeScoped)
	scope := r.Scope()
	below := scope.Scope()
	local := r.Scope()
	register(t, local, "local", plain)
	all := []bodies{get(t, scope, "own"), get(t, below, "own"), get(t, local, "local")}
	_, err := registry.Get[bodies](r, "local")
	mustBe(t, "what is registered in a scope, from above", err, registry.ErrNotRegistered)
	r.Close()
	for _, c := range all {
		coretest.Check(t, c.Stats().Closed, "a coordinator of a scope is not closed")
	}
	_, err = registry.Get[bodies](below, "own")
	mustBe(t, "Get of a scope", err, core.ErrClosed)
}

// A scope without coordinators can be garbage-collected, and so can a closed scope.
func TestScopesAreForgotten(t *testing.T) {
	r := registry.New()
	registerScoped(t, r, "own", makeScoped)
	unused := func() weak.Pointer[registry.Registry] { return weak.Make(r.Scope()) }()
	closed := func() weak.Pointer[registry.Registry] {
		scope := r.Scope()
		get(t, scope, "own")
		scope.Close()
		return weak.Make(scope)
	}()
	open := func() weak.Pointer[registry.Registry] {
		scope := r.Scope()
		get(t, scope, "own")
		return weak.Make(scope)
	}()
	runtime.GC()
	kept := []bool{unused.Value() != nil, closed.Value() != nil, open.Value() != nil}
	mustEqual(t, "kept: an unused scope, a closed one, one with coordinators", fmt.Sprint(kept), "[false false true]")
	r.Close()
}
