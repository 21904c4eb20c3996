package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Wait]. The zero value waits, for votes that are yet to come,
// as long as the context allows. Patterns are as described at [core.Match].
type Options struct {
	// CancelOn ends the wait when a matching signal is raised. A signal that
	// matches both this and the votes is no vote.
	CancelOn string
	// Timeout is how long to wait; 0 means until the context ends.
	Timeout time.Duration
	// Within is how far back votes, and signals matching CancelOn, count that
	// the sink has already, as if they came in now, oldest first; 0 means not
	// at all, negative that all do.
	Within time.Duration
	// Key is what is voted on: other votes, and signals matching CancelOn with
	// another key, do not count. "" means that keys are voters.
	Key string
	// Voter says who cast a vote; nil means its operation or, for one raised
	// directly on the sink, its key or, with Key, its name. Votes of which
	// Voter returns "" count each. It is called on the goroutine that raises
	// or retracts the vote, or on that of Wait, with no lock held, and must
	// return the same whenever it is given the same vote.
	Voter func(vote core.Signal) string
}

// A Result is how a wait ended: without an error, one of Reached, Cancelled and
// TimedOut.
type Result struct {
	Reached   bool
	Cancelled bool // By ended it
	TimedOut  bool

	By    core.Signal   // the signal matching [Options.CancelOn], if Cancelled
	Votes []core.Signal // the newest of each voter, in the order of Seq
}

// Wait waits until votes of as many different voters as required, which are signals
// matching pattern, stand at the same time. It returns as soon as this is so, or a
// signal matches [Options.CancelOn], or [Options.Timeout] is over; the result says
// which, and what votes there were then. When ctx ends first, Wait returns its
// cause, with the votes so far.
//
// Wait starts no goroutine and leaves nothing subscribed. While it waits it keeps of
// each voter the newest 1024 votes that stand; a voter that casts more counts as
// long as one of those stands.
func Wait(ctx context.Context, sink *core.Sink, pattern string, required int, opts Options) (Result, error) {
	if err := check(sink, pattern, required, opts); err != nil {
		return Result{}, err
	}
	var timeout <-chan time.Time
	if opts.Timeout > 0 {
		timer := time.NewTimer(opts.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	p := poll{opts: opts, required: required, ended: make(chan struct{}), lookingBack: opts.Within != 0}
	// In this order: the retraction of a vote that is counted is heard of, and
	// a vote that is raised while looking back is counted.
	defer sink.SubscribeRetracted(pattern, p.retract)()
	both := pattern + "," + opts.CancelOn
	defer sink.Subscribe(both, p.hear)()
	if opts.Within != 0 {
		for s := range sink.Sense(core.Query{Pattern: both, Within: max(0, opts.Within)}) {
			p.count(s)
		}
		p.catchUp()
	}

	select {
	case <-p.ended:
		return p.end(Result{}), nil
	case <-timeout:
		return p.end(Result{TimedOut: true}), nil
	case <-ctx.Done():
	}
	result := p.end(Result{})
	if result.Reached || result.Cancelled { // just before
		return result, nil
	}
	return result, context.Cause(ctx)
}

func check(sink *core.Sink, pattern string, required int, opts Options) error {
	var errs []error
	if sink == nil {
		errs = append(errs, errors.New("quorum: the sink is nil, but votes are signals of a sink"))
	}
	if isEmpty(pattern) {
		errs = append(errs, fmt.Errorf("quorum: the pattern of the votes is %q, which no signal matches", pattern))
	}
	if required < 1 {
		errs = append(errs, fmt.Errorf("quorum: %d votes are required, but it must be 1 at least", required))
	}
	if opts.Timeout < 0 {
		errs = append(errs, fmt.Errorf("quorum: Options.Timeout is %v, but must not be negative", opts.Timeout))
	}
	return errors.Join(errs...)
}

func isEmpty(pattern string) bool {
	for part := range strings.SplitSeq(pattern, ",") {
		if strings.TrimSpace(part) != "" {
			return false
		}
	}
	return true
}

// poll is a wait: what handlers tell of and the waiter reads.
type poll struct {
	opts     Options
	required int
	ended    chan struct{} // closed when over

	mu          sync.Mutex
	ballot      ballot
	lookingBack bool
	meanwhile   []core.Signal // heard while looking back
	over        bool
	result      Result // if over
}

// hear takes in a signal that is raised now. While Wait looks back, it is only noted:
// what was there before comes first.
func (p *poll) hear(s core.Signal) {
	p.mu.Lock()
	noted := p.lookingBack && !p.over
	if noted {
		p.meanwhile = append(p.meanwhile, s)
	}
	p.mu.Unlock()
	if !noted {
		p.count(s)
	}
}

// catchUp counts what was raised while looking back, until there is no more.
func (p *poll) catchUp() {
	for {
		p.mu.Lock()
		next := p.meanwhile
		p.meanwhile = nil
		p.lookingBack = len(next) > 0 && !p.over
		more := p.lookingBack
		p.mu.Unlock()
		if !more {
			return
		}
		for _, s := range next {
			p.count(s)
		}
	}
}

// count counts a signal that matches the votes, CancelOn or both.
func (p *poll) count(s core.Signal) {
	if core.Match(p.opts.CancelOn, s.Name) {
		if p.opts.Key == "" || s.Key == "" || s.Key == p.opts.Key {
			p.end(Result{Cancelled: true, By: s})
		}
		return
	}
	v, ok := p.voter(s)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.ballot.cast(v, s)
	if p.ballot.voters() >= p.required {
		p.settle(Result{Reached: true})
	}
}

func (p *poll) retract(r core.Retraction) {
	v, ok := p.voter(r.Signal)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ballot.takeBack(v, r.Signal.Seq)
}

// end ends the wait with a result, unless it is over, and returns the one it has
// ended with.
func (p *poll) end(result Result) Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.settle(result)
	}
	return p.result
}

// settle ends the wait. The lock is held.
func (p *poll) settle(result Result) {
	result.Votes = p.ballot.list()
	p.over, p.result = true, result
	close(p.ended)
}

// voter says who cast a vote; it is false for a vote on something else.
func (p *poll) voter(s core.Signal) (voter, bool) {
	if p.opts.Key != "" && s.Key != p.opts.Key {
		return voter{}, false
	}
	v := voter{}
	switch {
	case p.opts.Voter != nil:
		v.name = p.opts.Voter(s)
	case s.Operation != 0:
		v.operation = s.Operation
	case p.opts.Key != "":
		v.name = s.Name
	default:
		v.name = s.Key
	}
	if v == (voter{}) {
		v.seq = s.Seq
	}
	return v, true
}
