package circuitbreaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// KeyedOptions configure a [Keyed]. With the zero value, the breaker of a key opens after five failures in a row, for 30 seconds, and
// then allows one trial.
type KeyedOptions struct {
	// Name is in errors and reasons; "" means "breaker".
	Name string
	// Rule is when the breaker of a key opens and closes. A key counts from its first failure on. Shadow is not allowed.
	Rule breaker.Options
	// Capacity is how many keys are remembered; 0 means 10,000. A key is forgotten when it is closed and none of its
	// failures counts. When all places are taken, keys that are not open and had no call for a minute are forgotten as well:
	// their failures do not count any more, and there is no trial. While all places are taken nevertheless, calls of other
	// keys are allowed and not counted.
	Capacity int
	// CountIf is as in [Options].
	CountIf func(error) bool

	// Pause tells a queue that a key is open for a time, so that no process starts its items. For a queue of package durable, that is
	// q.Pause(ctx, durable.Pause{Key: key, For: d, Reason: reason, Auto: true}): Auto keeps a longer pause of a person. Declare
	// q before the breaker, because its body needs the breaker. nil: other processes do not know. It is called by the call that has opened the key, with a
	// context that is not cancelled and ends after ten seconds. If it returns an error or panics, that is joined to the error of the call.
	Pause func(ctx context.Context, key string, d time.Duration, reason string) error
	// Trial reports whether the call of ctx is the first one after such a pause, for example durable.ClaimFrom(ctx).Trial, see [durable.Claim]; nil:
	// none is. The breaker allows a trial, also if the key is open here. If it fails, the key opens at once, in whichever process it ran. While there is no place for the key, it is only paused.
	//
	// [durable.Claim]: https://pkg.go.dev/github.com/ephemeralgo/ephemeral/atoms/durable#Claim
	Trial func(ctx context.Context) bool
}

// Keyed is a breaker for each key, for example for each customer whose endpoint is called. Make one with [NewKeyed]. It has no
// goroutine, needs no closing, and is safe for concurrent use.
type Keyed struct {
	opts KeyedOptions

	mu    sync.Mutex
	keys  map[string]*keyState
	swept time.Time // when keys were forgotten last, because all places were taken
}

type keyState struct {
	*breaker.Breaker
	why  string
	used time.Time // when a call began or ended last
}

// A keyedCall is a call that was allowed. Give it to end, once.
type keyedCall struct {
	of     *keyState // nil: the key was not remembered
	permit breaker.Permit
	trial  bool
}

// resolved returns the options with defaults, or says what is wrong with them.
func (o KeyedOptions) resolved() (KeyedOptions, error) {
	o.Name, o.Capacity = cmp.Or(o.Name, "breaker"), cmp.Or(o.Capacity, 10_000)
	if o.Capacity < 0 {
		return o, fmt.Errorf("circuitbreaker: KeyedOptions.Capacity is %d, but must be more than 0", o.Capacity)
	}
	if o.Rule.Shadow {
		return o, errors.New("circuitbreaker: KeyedOptions.Rule.Shadow is set, but a breaker for each key has no shadow")
	}
	if _, err := breaker.New(o.Rule); err != nil {
		return o, fmt.Errorf("circuitbreaker: %w", err)
	}
	return o, nil
}

// NewKeyed makes a breaker for each key, or says what is wrong with the options.
func NewKeyed(opts KeyedOptions) (*Keyed, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	return &Keyed{opts: opts, keys: map[string]*keyState{}}, nil
}

// Check returns an [OpenError] if the breaker of the key is open, otherwise nil. It starts no trial.
func (k *Keyed) Check(key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.keys[key]; s != nil && s.State(time.Now()) == breaker.Open {
		return k.refusal(key, s)
	}
	return nil
}

// Reset closes the breaker of a key, and forgets its failures. It does not end what Pause has begun.
func (k *Keyed) Reset(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, key)
}

// Len is how many keys are remembered.
func (k *Keyed) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.keys)
}

// Explain says in one line what holds up the calls of a key; "": nothing.
func (k *Keyed) Explain(key string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.keys[key]
	if s == nil {
		return ""
	}
	switch now := time.Now(); s.State(now) {
	case breaker.Open:
		return fmt.Sprintf("breaker %s is open for key %s for %v: %s", k.opts.Name, key, s.ClosesIn(now).Round(time.Millisecond), s.why)
	case breaker.HalfOpen:
		return fmt.Sprintf("breaker %s tries whether key %s works again: %s", k.opts.Name, key, s.why)
	}
	return ""
}

// String says in one line which keys are open.
func (k *Keyed) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var open []string
	for key, s := range k.keys {
		if s.State(time.Now()) != breaker.Closed {
			open = append(open, key)
		}
	}
	slices.Sort(open)
	text := fmt.Sprintf("breaker %s: %d keys are open", k.opts.Name, len(open))
	if len(open) > 10 {
		open = append(open[:10], "...")
	}
	if len(open) > 0 {
		text += ": " + strings.Join(open, ", ")
	}
	return text
}

func (k *Keyed) refusal(key string, s *keyState) error {
	now := time.Now()
	return &OpenError{Name: k.opts.Name + " of key " + key, Failures: s.Failures(now), Wait: s.ClosesIn(now)}
}

// WrapKeyed returns a function that calls work if the breaker of the item's key allows it, and otherwise returns an [OpenError].
// Key may be called concurrently; a panic of it is an error. WrapKeyed panics if k, key or work is nil.
func WrapKeyed[T any](k *Keyed, key func(T) string, work core.Work[T]) core.Work[T] {
	if k == nil || key == nil || work == nil {
		panic("circuitbreaker: WrapKeyed needs a breaker, a function for keys and a function")
	}
	return func(ctx context.Context, item T) error {
		name, err := guard.Value("the function of the key", func() string { return key(item) })
		if err != nil {
			return fmt.Errorf("circuitbreaker: %w", err)
		}
		return k.do(ctx, name, func() error { return work(ctx, item) })
	}
}

func (k *Keyed) do(ctx context.Context, key string, work func() error) (err error) {
	trial := false
	if k.opts.Trial != nil {
		trial, _ = guard.Value("Trial", func() bool { return k.opts.Trial(ctx) })
	}
	c, err := k.begin(key, trial)
	if err != nil {
		return err
	}
	result, why := breaker.Failure, "a call has panicked" // if it panics
	defer func() {
		if d := k.end(key, c, result, why); d > 0 && k.opts.Pause != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			var failed error
			panicked := guard.Do("KeyedOptions.Pause", func() { failed = k.opts.Pause(ctx, key, d, "breaker "+k.opts.Name+": "+why) })
			if failed = cmp.Or(panicked, failed); failed != nil {
				err = errors.Join(err, fmt.Errorf("circuitbreaker: pause key %q: %w", key, failed))
			}
		}
	}()
	if err = work(); err != nil {
		why = guard.Text(err)
	}
	result = resultOf(err, k.opts.CountIf)
	return err
}

// begin begins a call if one is allowed.
func (k *Keyed) begin(key string, trial bool) (keyedCall, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.keys[key]
	if s == nil {
		return keyedCall{trial: trial}, nil
	}
	s.used = time.Now()
	p, ok := s.Allow(s.used)
	if !ok && !trial {
		return keyedCall{}, k.refusal(key, s)
	}
	return keyedCall{s, p, trial}, nil
}

// end ends a call. If that has opened the breaker of the key, it returns for how long.
func (k *Keyed) end(key string, c keyedCall, r breaker.Result, why string) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	s := k.counting(key, c, r, now)
	if s == nil || !s.done(c, r, now) {
		return 0
	}
	if s.healthy(now) {
		delete(k.keys, key)
	}
	if d := s.ClosesIn(now); d > 0 && r == breaker.Failure {
		s.why = why
		return d
	}
	return 0
}

// counting returns the state of the key in which a result counts, or nil. It is made for the first failure.
func (k *Keyed) counting(key string, c keyedCall, r breaker.Result, now time.Time) *keyState {
	s := k.keys[key]
	forgotten := c.of != nil && c.of != s // meanwhile
	if forgotten && (!c.trial || r == breaker.Neutral) || s == nil && r != breaker.Failure {
		return nil
	}
	if s == nil {
		s = &keyState{Breaker: core.Must(breaker.New(k.opts.Rule))}
		if k.room(now) {
			k.keys[key] = s
		} else if !c.trial {
			return nil
		}
	}
	return s
}

// done counts a result. It reports false for one that comes too late.
func (s *keyState) done(c keyedCall, r breaker.Result, now time.Time) bool {
	was := s.State(now)
	s.used = now
	if c.of == nil && was == breaker.Closed { // it began before the key was remembered; later, its result does not count
		c.permit, _ = s.Allow(now)
	}
	switch {
	case c.trial && r == breaker.Failure:
		s.Trip(now)
	case c.trial && r == breaker.Success:
		s.Breaker.Reset()
	default:
		return s.Done(c.permit, now, r) || was != breaker.Open
	}
	return true
}

// healthy reports whether nothing needs to be remembered.
func (s *keyState) healthy(now time.Time) bool {
	return s.State(now) == breaker.Closed && s.Failures(now) == 0
}

// idle is how long a key that is not open had no call when it is forgotten for another one.
const idle = time.Minute

// room reports whether one more key can be remembered. It forgets healthy and idle ones at most once a second.
func (k *Keyed) room(now time.Time) bool {
	if len(k.keys) >= k.opts.Capacity && now.Sub(k.swept) >= time.Second {
		k.swept = now
		for key, s := range k.keys {
			if s.healthy(now) || s.State(now) != breaker.Open && now.Sub(s.used) >= idle {
				delete(k.keys, key)
			}
		}
	}
	return len(k.keys) < k.opts.Capacity
}
