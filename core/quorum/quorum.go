package quorum

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/check"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Wait]. The zero value waits for votes raised from now on, until
// the context ends. Patterns are as described at [signals.Match].
type Options struct {
	// CancelOn ends the wait when a matching signal is raised. A signal that
	// matches both this and the votes is no vote.
	//
	//ephemeral:pattern
	CancelOn string
	// Timeout is how long to wait; 0 means until the context ends.
	Timeout time.Duration
	// Within is how old earlier signals on the sink may be to count: votes, and
	// signals that match CancelOn. They count oldest first. 0 means that earlier
	// signals do not count, negative that all of them count.
	Within time.Duration
	// Key is what the vote is about. Votes and signals matching CancelOn with
	// another key do not count. Votes of one name that were raised directly on the
	// sink have the same voter. "" means that all keys count.
	//
	//ephemeral:none
	Key string
	// Voter returns the voter of a vote; nil means its operation. A vote that was
	// raised directly on the sink is then its own voter or, with Key, has its name
	// as voter. Each vote for which Voter returns "" counts. It is called with no
	// lock held, on the goroutine that raises or retracts the vote, or on the
	// goroutine of Wait. For the same vote it must always return the same voter.
	Voter func(vote signals.Signal) string
}

// resolved returns the options with defaults, or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	return o, check.NotNegative("quorum: Options.Timeout", o.Timeout)
}

// A Result is how a wait ended. Without an error, Reached or TimedOut is true, or By has a name.
type Result struct {
	Reached  bool
	TimedOut bool

	By    signals.Signal   // the signal matching [Options.CancelOn] that has ended the wait; without a name if none has
	Votes []signals.Signal // the newest vote of each voter, in the order of Seq
}

// Wait waits until as many different voters as required have a vote: a signal matching
// pattern that is not retracted. It also returns when a signal matches [Options.CancelOn]
// and when [Options.Timeout] is over. The result says which, and has the votes until
// then. If ctx ends first, Wait returns the cause of ctx and the votes so far.
//
// Wait starts no goroutine and leaves nothing subscribed. While it waits it keeps the
// newest 1024 votes of each voter; a voter counts while one of these is not retracted.
//
//ephemeral:pattern {pattern}
func Wait(ctx context.Context, sink *signals.Sink, pattern string, required int, opts Options) (Result, error) {
	opts, err := opts.resolved()
	err = errors.Join(
		check.Error(sink == nil, "quorum: the sink is nil, but votes are signals of a sink"),
		check.Error(strings.Trim(pattern, ", \t\r\n") == "",
			"quorum: the pattern of the votes is %q, which no signal matches", pattern),
		check.Error(required < 1, "quorum: %d votes are required, but it must be at least 1", required),
		err,
	)
	if err != nil {
		return Result{}, err
	}
	var timeout <-chan time.Time
	if opts.Timeout > 0 {
		timeout = time.After(opts.Timeout)
	}
	p := poll{opts: opts, required: required, ended: make(chan struct{})}
	// In this order no retraction of a counted vote is missed, and votes that are raised
	// while Wait looks back count.
	defer sink.SubscribeRetracted(pattern, p.retract)()
	listen := sink.Subscribe
	if opts.Within != 0 {
		listen = sink.Follow
	}
	since := time.Now().Add(-opts.Within)
	defer listen(pattern+","+opts.CancelOn, func(s signals.Signal) {
		if opts.Within <= 0 || !s.Time.Before(since) {
			p.count(s)
		}
	})()

	select {
	case <-p.ended:
		return p.end(Result{}), nil
	case <-timeout:
		return p.end(Result{TimedOut: true}), nil
	case <-ctx.Done():
	}
	result := p.end(Result{})
	if result.Reached || result.By.Name != "" { // just before
		return result, nil
	}
	return result, context.Cause(ctx)
}

// poll is the state of one Wait, shared with the handlers of its subscriptions.
type poll struct {
	opts     Options
	required int
	ended    chan struct{} // closed when over

	mu     sync.Mutex
	ballot ballot
	over   bool
	result Result // if over
}

// count counts a signal that matches the votes, CancelOn or both.
func (p *poll) count(s signals.Signal) {
	if signals.Match(p.opts.CancelOn, s.Name) {
		if p.opts.Key == "" || s.Key == "" || s.Key == p.opts.Key {
			p.end(Result{By: s})
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

func (p *poll) retract(r signals.Retraction) {
	v, ok := p.voter(r.Signal)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ballot.takeBack(v, r.Signal.Seq)
}

// end ends the wait with a result, unless it is over already. It returns the result of the
// wait.
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

// voter returns the voter of a vote; it is false for a vote with another key.
func (p *poll) voter(s signals.Signal) (voter, bool) {
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
	}
	if v == (voter{}) {
		v.seq = s.Seq
	}
	return v, true
}
