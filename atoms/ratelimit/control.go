package ratelimit

import (
	"math"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals that limiters raise, with the name of the limiter as the key. [SignalApplied],
// [SignalBurstApplied] and [SignalRejected] of a [Group] have the name of the limit.
const (
	// SignalLimited is held while requests are refused or queued: from the first such
	// request until there was none for as long as the bucket takes to fill, for at
	// least a second and at most a minute. A [Keyed] does not raise it.
	SignalLimited = "rate.limit.limited"
	// SignalRecovered is raised at the end of that time.
	SignalRecovered = "rate.limit.recovered"
	// SignalApplied is raised when the rate was set; see [RateApplied].
	SignalApplied = "rate.limit.applied"
	// SignalBurstApplied is raised when the burst was set; see [BurstApplied].
	SignalBurstApplied = "rate.limit.burst.applied"
	// SignalRejected is raised for a command that was not obeyed; see
	// [CommandRejected].
	SignalRejected = "rate.limit.rejected"
)

// Signals that limiters obey. A command with a key is for the limiter of that name, or for
// the limit of that name of a [Group]. A command without a key is for all limiters on the
// sink. The first four are followed by a colon and a number, such as 1e3 or 12.5. Text
// before the command ends with a dot or a colon, as in "api.rate.limit.set:50". See
// [core.ParseCommand].
const (
	// CommandSet sets the rate in tokens per second; 0 pauses.
	CommandSet = "rate.limit.set"
	// CommandIncrease adds to the rate.
	CommandIncrease = "rate.limit.increase"
	// CommandDecrease subtracts from the rate, down to 1 per second.
	CommandDecrease = "rate.limit.decrease"
	// CommandBurst sets the burst; a fraction is cut off.
	CommandBurst = "rate.limit.burst"
	// CommandReset, without colon and number, fills the bucket.
	CommandReset = "rate.limit.reset"
)

// A Change is the payload of signals about a rate or a burst that was set.
type Change struct {
	Rate  float64 `json:"rate"` // tokens per second
	Burst int     `json:"burst"`
}

// A Rejection is the payload of signals about a command that was not obeyed.
type Rejection struct {
	Command string `json:"command"` // one of the Command constants
	Value   string `json:"value"`   // what followed the command
	Rule    string `json:"rule"`    // the rule that it breaks
}

// The signals with their payload. If a command asked for the change, it is the cause of the
// signal; see [core.Sink.Because].
var (
	RateApplied     = core.NewKind[Change](SignalApplied)
	BurstApplied    = core.NewKind[Change](SignalBurstApplied)
	CommandRejected = core.NewKind[Rejection](SignalRejected)
)

// numberCommands are the commands with a number.
var numberCommands = []string{CommandSet, CommandIncrease, CommandDecrease, CommandBurst}

// parseCommand returns the command in the name of a signal, and what follows it; "" if there
// is none.
func parseCommand(name string) (command, value string) {
	command, value = core.FindCommand(name, numberCommands...)
	if rest, ok := core.ParseCommand(name+":", CommandReset); command == "" && ok && rest == "" {
		command = CommandReset
	}
	return command, strings.TrimSpace(value)
}

// subscribe makes the engine obey commands. Those without a key are for all limits, or for
// none.
func (e *engine) subscribe(opts Options, withoutKey bool) {
	if opts.IgnoreCommands {
		return
	}
	e.unsubscribe = e.sink.Subscribe(core.CommandPattern(numberCommands...)+",*"+CommandReset, func(s core.Signal) {
		command, value := parseCommand(s.Name)
		for limit, name := range e.limits {
			if command != "" && (s.Key == name || s.Key == "" && withoutKey) {
				e.obey(s, limit, command, value)
			}
		}
	})
}

// obey does what a command says, or raises a signal that says why not.
func (e *engine) obey(s core.Signal, limit int, command, value string) {
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
		CommandRejected.Raise(on, e.limits[limit], Rejection{command, value, rule})
	}
}

// parseNumber reads a decimal number, or returns the rule that it breaks. It does not read
// hexadecimal numbers, infinity and the like.
func parseNumber(value string) (n float64, rule string) {
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case strings.Trim(value, "0123456789.eE+-") != "", err != nil: // one that is too large is an error
		return 0, "must be a decimal number such as 12.5 or 1e3"
	case n < 0:
		return 0, "must not be negative"
	}
	return math.Abs(n), "" // -0 is 0
}

// next returns what a command makes of the settings, or the rule that it breaks.
func (c Change) next(command string, n float64) (Change, string) {
	old := c.Rate
	switch {
	case command == CommandBurst && (n < 1 || n > float64(maxBurst)):
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
	return c, rateRule(c.Rate)
}

const ruleBurst = "must be at least 1 and at most 2^40"

// rateRule is the rule that a rate breaks; "" if none. It breaks it if it is not a number.
func rateRule(rate float64) string {
	if rate == 0 || rate >= MinRate && rate <= MaxRate {
		return ""
	}
	return "must be 0, which pauses, or from 1e-9 to 1e9 per second"
}
