package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a queue. The zero value is the default. The processes of one queue should
// have equal Options, except for Node and MaxConcurrency. If they differ, as during a deploy,
// each process uses its own.
type Options struct {
	// Name is the name of the queue in the store; "" means "durable". A store can have many
	// queues, also of different types: call New with another Name for each. Queues with the
	// same name and store are one queue.
	Name string
	// Node is the name of this process, for people; "" means the name of the host and the
	// process id.
	Node string
	// Sink is where the queue raises its signals, and reads those of DeferOn; nil means a sink
	// of its own.
	Sink *signals.Sink

	// MaxConcurrency is how many items this process runs at once; 0 means
	// runtime.GOMAXPROCS.
	MaxConcurrency int
	// MaxCluster is how many items of the queue all processes run at once; 0 means no limit.
	// A body whose process has lost its lease does not count, even if it still runs.
	MaxCluster int
	// Lanes are priorities, highest first; see [Queue.Lane]. The Limit of a lane holds
	// for all processes together. The other fields of a lane must be zero.
	Lanes []core.Lane
	// Classes are kinds of items that share what is scarce; see [Queue.Class]. Their limits and rates
	// hold for all processes together. If processes have different ones, those of the process
	// that was the last to begin Run count. A class that no process has any more keeps its own.
	Classes []Class
	// KeyRate is how many items of each key are claimed each second, in all processes together; see [Class]. The zero Rate means
	// no limit. In any time T, at most PerSecond x T + Burst items of a key are claimed, in whole microseconds for each token. An
	// item that becomes the next of its key gets the RunAt at which the key has a token, so claims look at nothing. Items whose key
	// is "" have no limit. All processes need the same KeyRate, also those that only enqueue. At most one item of a key runs at a
	// time, so there is no limit for that.
	KeyRate core.Rate
	// Ageing keeps lower lanes from starving. After an item has been due for this time, it may
	// pass higher lanes: then one of four claimed items is the oldest of all lanes. 0 means 10
	// seconds, negative never.
	Ageing time.Duration

	// MaxAttempts is how many attempts an item has before it is dead; 0 means 25, negative no
	// limit. With the defaults, an item that always fails is dead after 4 to 9 days, and meanwhile later items of
	// its key wait. An attempt counts when it begins. If the lease is lost, it counts only if the
	// item ran alone, which it does after two losses: see [Item].Losses.
	MaxAttempts int
	// Backoff is the pause after the first failed attempt; 0 means 1 second. The pause doubles
	// with each further attempt. MaxBackoff is its maximum; 0 means 24 hours. Each pause is
	// shortened at random by up to half. If the error has a method RetryAfter() time.Duration that returns more than 0,
	// such as that of retry.After, the pause is what it returns, at most MaxBackoff. Of joined errors, the first with this method counts.
	Backoff, MaxBackoff time.Duration
	// BackoffFunc returns the pause after an attempt, counted from 1, in place of Backoff; nil means Backoff. The
	// pause is at most MaxBackoff, and a negative one is 0. After a panic, Backoff holds. It may be called concurrently, and does not block.
	BackoffFunc func(attempt int, err error) time.Duration
	// Timeout is how long an attempt may take; 0 means no limit. See [core.Options].Timeout.
	Timeout time.Duration
	// HaltOnDead stops a key when one of its items is dead: later items of the key wait until
	// [Queue.Again] or [Queue.Cancel] is called for the dead item.
	HaltOnDead bool

	// Lease is the time after the last heartbeat of a process until other processes get its
	// items; 0 means 15 seconds, the minimum is 1 second. After nine tenths of this time
	// without a heartbeat, the process cancels its bodies.
	Lease time.Duration
	// Poll is how often a process sends its heartbeat, which also says whether items can be
	// claimed; 0 means 1 second. If Lease/3 is less than Poll, it is used instead.
	Poll time.Duration
	// Waker wakes up processes before their next Poll; nil means the store if it is a Waker,
	// otherwise none.
	Waker Waker
	// DeferOn is a pattern of signals, see [signals.Match]; "" means none. While a signal on Sink
	// matches it, this process claims no items.
	//
	//ephemeral:pattern
	DeferOn string

	// Keep is how long items are kept after their end. 0 means 24 hours for Done, Cancelled and Signals,
	// and 30 days for Dead; negative means for ever. See [Queue.Prune].
	Keep Keep
	// MaxResult is how long the JSON of [Return] may be, in bytes; 0 means 64 kB (65,536), and MaxData is the
	// maximum. It is also the maximum for each step of a flow: see [Flow].
	MaxResult int
	// MaxSteps and MaxFlow are how many steps a flow may have, and how many bytes all their results; 0 means 1,000 and 4 MB
	// (4,194,304). A step above that is a permanent error.
	MaxSteps, MaxFlow int
	// Version is the version of the bodies of flows in this program: see [Flow.Version]. Flows that a higher version has begun are given
	// back by this process, with [SignalUnserved].
	Version int
	// Encode and Decode turn items into bytes and back; nil means json.Marshal and
	// json.Unmarshal. Decode gets a pointer. An item that cannot be decoded, or whose
	// Decode panics, is dead.
	Encode func(item any) ([]byte, error)
	Decode func(data []byte, item any) error

	// Carrier takes values of the context of Enqueue to the attempts of the item, such as the trace of a Telemetry; nil means
	// none.
	Carrier Carrier
	// Show returns what an item is, for people: its text is on status pages and in [SignalFailed]; nil shows nothing.
	// It may be called concurrently. If it panics, there is no text.
	Show func(item any) string

	// MaxTracked is how many finished items of this process [Queue.Here] shows, MaxAge for how
	// long; see [core.Options].
	MaxTracked int
	MaxAge     time.Duration
}

// resolved returns the options with defaults in place of zeroes, and an error if an option is
// wrong.
func (o Options) resolved() (Options, error) {
	var errs []error
	o.Name = cmp.Or(o.Name, "durable")
	if o.Node == "" {
		host, _ := os.Hostname()
		o.Node = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, ""), os.Getpid())
	}
	errs = append(errs, checkText("Options.Name", o.Name), checkText("Options.Node", o.Node))
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	count := func(field string, value *int, normally int) {
		if *value = cmp.Or(*value, normally); *value < 0 {
			errs = append(errs, fmt.Errorf("durable: Options.%s is %d, but must not be negative", field, *value))
		}
	}
	span := func(field string, value *time.Duration, normally, least time.Duration) {
		if *value = cmp.Or(*value, normally); *value < least {
			errs = append(errs, fmt.Errorf("durable: Options.%s is %v, but must be at least %v", field, *value, least))
		}
	}
	count("MaxConcurrency", &o.MaxConcurrency, runtime.GOMAXPROCS(0))
	count("MaxCluster", &o.MaxCluster, 0)
	count("MaxResult", &o.MaxResult, 64<<10)
	count("MaxSteps", &o.MaxSteps, 1000)
	count("MaxFlow", &o.MaxFlow, 4<<20)
	count("Version", &o.Version, 0)
	if o.MaxResult > MaxData {
		errs = append(errs, fmt.Errorf("durable: Options.MaxResult is %d, more than %d", o.MaxResult, MaxData))
	}
	span("Backoff", &o.Backoff, time.Second, 1)
	span("MaxBackoff", &o.MaxBackoff, max(24*time.Hour, o.Backoff), o.Backoff)
	span("Timeout", &o.Timeout, 0, 0)
	span("Lease", &o.Lease, 15*time.Second, time.Second)
	span("Poll", &o.Poll, time.Second, time.Millisecond)
	o.Ageing = cmp.Or(o.Ageing, 10*time.Second)
	o.Keep.Done = cmp.Or(o.Keep.Done, 24*time.Hour)
	o.Keep.Dead = cmp.Or(o.Keep.Dead, 30*24*time.Hour)
	o.Keep.Cancelled = cmp.Or(o.Keep.Cancelled, 24*time.Hour)
	o.Keep.Signals = cmp.Or(o.Keep.Signals, 24*time.Hour)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 25)
	o.Lanes = slices.Clone(o.Lanes)
	for n, l := range o.Lanes {
		if l != (core.Lane{Name: l.Name, Limit: l.Limit}) || l.Limit < 0 {
			errs = append(errs, fmt.Errorf("durable: Options.Lanes[%d] is %+v, but may have a Name and a Limit only", n, l))
		}
		if slices.ContainsFunc(o.Lanes[:n], func(other core.Lane) bool { return other.Name == l.Name }) || l.Name == "" {
			errs = append(errs, fmt.Errorf("durable: Options.Lanes[%d] is named %q, but lanes must have different names", n, l.Name))
		}
		errs = append(errs, checkName("the name of a lane", l.Name))
	}
	classes, err := resolvedClasses(o.Classes)
	o.Classes, errs = classes, append(errs, err)
	o.KeyRate, err = rateOf(o.KeyRate, "Options.KeyRate")
	errs = append(errs, err)
	if o.Encode == nil {
		o.Encode = json.Marshal
	}
	if o.Decode == nil {
		o.Decode = json.Unmarshal
	}
	return o, errors.Join(errs...)
}

// checkText checks a text that a store keeps.
func checkText(what, text string) error {
	switch {
	case len(text) > MaxText:
		return fmt.Errorf("durable: %s has %d bytes, more than %d: %.40q", what, len(text), MaxText, text)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("durable: %s is not valid UTF-8, or has a NUL: %.40q", what, text)
	}
	return nil
}

// A Carrier takes values of a context over processes: from Enqueue to the attempts of the item. A Telemetry of package
// telemetry is one. After a panic nothing is carried. Its methods may be called concurrently.
type Carrier interface {
	// Inject returns what ctx, the context of Enqueue, carries. If that is longer than 4 kB, nothing is carried.
	Inject(ctx context.Context) map[string]string
	// Extract returns ctx, the context of an attempt, with what Inject has returned. About says what is attempted: "item", "attempt", and
	// the metadata of the item, with the prefix "metadata.".
	Extract(ctx context.Context, carried, about map[string]string) context.Context
}

// ItemOptions configure single items; see [Queue.With].
type ItemOptions struct {
	// Lane is the name of a lane; "" means the lane "normal". If there is no such lane, ""
	// means the last lane.
	//
	//ephemeral:lane
	Lane string
	// Class is the name of a class; "" means none.
	//
	//ephemeral:class
	Class string
	// Cost counts for the CostRate of the class: see [Queue.Cost].
	Cost int
	// Delay is how long an item waits before it may run. Later items of its key wait for it.
	// Negative is none.
	Delay time.Duration
	// RunAt is the time before which an item does not run, by the clock of the store; zero means none. If
	// there is a Delay, too, the later one counts. Later items of its key wait for it.
	RunAt time.Time
	// MaxAttempts and Timeout are those of the item, in place of those in [Options]; 0 means these.
	MaxAttempts int
	Timeout     time.Duration
	// Metadata is kept with an item, for people and bodies: [Item] and [Claim] have it, pages and spans show it. Names and values
	// have at most 4 kB (4,096 bytes) together.
	Metadata map[string]string
	// Unique is an id that the queue accepts once within UniqueFor; "" means none. If the queue got
	// an item with the same id in this time, Enqueue adds nothing and returns the ID of that item,
	// even if the item has ended. UniqueFor 0 means 24 hours. [UniqueBy] makes an id from values;
	// [Queue.EnqueueUnique] says whether the item was added.
	Unique    string
	UniqueFor time.Duration
	// Replace gives the item that has the Unique id the data, lane, class, RunAt and the other options of the new one, if it is
	// Blocked, Ready or Retry; it has all its attempts again. No item is added, and UniqueFor begins again. It must have the
	// same key: else the error is [ErrOrder], and nothing changes. An item that was claimed or has ended is left
	// alone: the new item is added, and has the id from now on.
	Replace bool
	// SkipIfAlive adds nothing while an item of the key is Ready, Running, Retry or Halted: Enqueue returns the ID of that
	// item. So of several processes one adds a job, and it never runs twice at a time. Items need a key.
	SkipIfAlive bool
}

// maxMetadata is how long metadata may be, in bytes.
const maxMetadata = 4096

func (o ItemOptions) resolved() (ItemOptions, error) {
	o.Delay = max(0, o.Delay)
	err := checkText("ItemOptions.Unique", o.Unique)
	size := 0
	for name, value := range o.Metadata {
		if size += len(name) + len(value); !utf8.ValidString(name+value) || strings.ContainsRune(name+value, 0) {
			err = fmt.Errorf("durable: ItemOptions.Metadata has a name or value that is not valid UTF-8, or has a NUL: %.40q", name+": "+value)
		}
	}
	switch {
	case err != nil:
	case size > maxMetadata:
		err = fmt.Errorf("durable: ItemOptions.Metadata has %d bytes, more than %d", size, maxMetadata)
	case o.Cost < 0 || int64(o.Cost) > bucket.MaxBurst:
		err = fmt.Errorf("durable: ItemOptions.Cost is %d, but must be from 0 to 2^40", o.Cost)
	case o.Timeout < 0:
		err = fmt.Errorf("durable: ItemOptions.Timeout is %v, but must not be negative", o.Timeout)
	case o.RunAt.Year() > 9999:
		err = fmt.Errorf("durable: ItemOptions.RunAt is in the year %d, but must be before 10000", o.RunAt.Year())
	case o.Replace && o.Unique == "":
		err = errors.New("durable: ItemOptions.Replace needs Unique")
	case o.UniqueFor < 0:
		err = fmt.Errorf("durable: ItemOptions.UniqueFor is %v, but must not be negative", o.UniqueFor)
	case o.Unique == "":
		o.UniqueFor = 0
	case o.UniqueFor == 0:
		o.UniqueFor = 24 * time.Hour
	}
	return o, err
}
