package ratelimit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals of limiters. The key is the name of the limiter. For [RateApplied], [BurstApplied] and
// [CommandRejected] of a [Group], it is the name of the limit.
const (
	// SignalLimited is held while requests are refused or queued. It ends when there was no
	// such request for the time that the bucket takes to fill, which counts as at least 1
	// second and at most 1 minute. A [Keyed] does not raise it.
	SignalLimited = "rate.limit.limited"
	// SignalRecovered is raised when SignalLimited ends, except by Close.
	SignalRecovered = "rate.limit.recovered"
)

// Commands are signals that limiters obey. If a command has a key, it is for the limiter of
// that name, or for the limit of that name of a [Group]. If it has no key, it is for all
// limiters on the sink, each [Keyed] included, but not for a Group. All commands but
// CommandReset need a colon and a decimal number after them: "rate.limit.set:12.5". A prefix
// is allowed if it ends with a dot or a colon: "api.rate.limit.set:50".
const (
	// CommandSet sets the rate in tokens per second; 0 pauses.
	CommandSet = "rate.limit.set"
	// CommandIncrease adds to the rate.
	CommandIncrease = "rate.limit.increase"
	// CommandDecrease subtracts from the rate, but does not go below 1 per second. If the
	// rate is 1 or less, the command is rejected.
	CommandDecrease = "rate.limit.decrease"
	// CommandBurst sets the burst; a fraction is cut off.
	CommandBurst = "rate.limit.burst"
	// CommandReset fills the bucket. It has no colon and no number.
	CommandReset = "rate.limit.reset"
)

// A Change is the payload of [RateApplied] and [BurstApplied]: the new settings.
type Change struct {
	Rate  float64 `json:"rate"` // tokens per second
	Burst int     `json:"burst"`
}

// The kinds of the signals. If a command was the reason for a signal, it is the cause of the
// signal; see [signals.Sink.Because].
var (
	RateApplied     = signals.NewKind[Change]("rate.limit.applied")       // the rate was set
	BurstApplied    = signals.NewKind[Change]("rate.limit.burst.applied") // the burst was set
	CommandRejected = signals.NewKind[error]("rate.limit.rejected")       // a command was not valid; the error names the command and the rule
)

// numberCommands are the commands with a number.
var numberCommands = []string{CommandSet, CommandIncrease, CommandDecrease, CommandBurst}

// parseCommand returns the command in the name of a signal, and the value after it. If there
// is none, command is "".
func parseCommand(name string) (command, value string) {
	command, value = signals.FindCommand(name, numberCommands...)
	if rest, ok := signals.ParseCommand(name+":", CommandReset); command == "" && ok && rest == "" {
		command = CommandReset
	}
	return command, strings.TrimSpace(value)
}

// subscribe makes the engine obey commands. withoutKey says whether it obeys commands that
// have no key, for all limits.
func (e *engine) subscribe(opts Options, withoutKey bool) {
	if opts.IgnoreCommands {
		return
	}
	e.unsubscribe = e.sink.Subscribe(signals.CommandPattern(numberCommands...)+",*"+CommandReset, func(s signals.Signal) {
		command, value := parseCommand(s.Name)
		for limit, name := range e.limits {
			if command != "" && (s.Key == name || s.Key == "" && withoutKey) {
				e.obey(s, limit, command, value)
			}
		}
	})
}

// obey carries out a command, or raises CommandRejected.
func (e *engine) obey(s signals.Signal, limit int, command, value string) {
	if command == CommandReset {
		e.reset(limit, limit+1)
		return
	}
	on, applied := e.sink.Because(s), RateApplied
	if command == CommandBurst {
		applied = BurstApplied
	}
	n, rule := parseNumber(value)
	if rule == "" {
		rule = e.update(on, limit, applied, func(old Change) (Change, string) { return old.next(command, n) })
	}
	if rule != "" {
		CommandRejected.Raise(on, e.limits[limit], fmt.Errorf("ratelimit: %s:%.40q: the value %s", command, value, rule))
	}
}

// parseNumber reads a decimal number, or returns the rule that the value breaks. It does not
// accept hexadecimal numbers and infinity.
func parseNumber(value string) (n float64, rule string) {
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case strings.Trim(value, "0123456789.eE+-") != "", err != nil: // err is also set if the number is too large
		return 0, "must be a decimal number such as 12.5 or 1e3"
	case n < 0:
		return 0, "must not be negative"
	}
	return math.Abs(n), "" // -0 is 0
}

// next returns the settings after a command, or the rule that the command breaks.
func (c Change) next(command string, n float64) (Change, string) {
	old := c.Rate
	switch {
	case command == CommandBurst && (n < 1 || n > float64(bucket.MaxBurst)):
		return c, ruleBurst
	case command == CommandBurst:
		c.Burst = int(n)
		return c, ""
	case command == CommandSet:
		c.Rate = n
	case n == 0:
		return c, "must be more than 0"
	case old == Unlimited:
		return c, "the rate is unlimited: set it first"
	case command == CommandIncrease:
		c.Rate += n
	case old <= 1:
		return c, "a decrease does not go below 1 per second"
	default:
		c.Rate = max(old-n, 1)
	}
	return c, bucket.RateRule(c.Rate)
}

const ruleBurst = "must be at least 1 and at most 2^40"
