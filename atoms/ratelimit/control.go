package ratelimit

import (
	"math"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
)

// Signals that limiters raise, with the limiter's name as key.
const (
	// SignalLimited is held while requests are refused or have to wait: from the
	// first one until there was none for as long as the bucket takes to fill, a
	// second at least and a minute at most.
	SignalLimited = "rate.limit.limited"
	// SignalRecovered is raised at the end of that.
	SignalRecovered = "rate.limit.recovered"
	// SignalApplied is raised when the rate was set; see [RateApplied].
	SignalApplied = "rate.limit.applied"
	// SignalBurstApplied is raised when the burst was set; see [BurstApplied].
	SignalBurstApplied = "rate.limit.burst.applied"
	// SignalRejected is raised for a command that was not heeded; see
	// [CommandRejected].
	SignalRejected = "rate.limit.rejected"
)

// Signals that limiters heed. With a key they are for the limiter of that name,
// without one for all on the sink. The first four are followed by a colon and a
// number, 1e3 or 12.5; text before the command ends with a dot or a colon, as in
// "api.rate.limit.set:50". See [core.ParseCommand].
const (
	// CommandSet sets the rate in tokens per second; 0 pauses.
	CommandSet = "rate.limit.set"
	// CommandIncrease adds to the rate.
	CommandIncrease = "rate.limit.increase"
	// CommandDecrease takes from the rate, but goes no lower than 1 per second.
	CommandDecrease = "rate.limit.decrease"
	// CommandBurst sets the burst; of 2.7 the 2 counts.
	CommandBurst = "rate.limit.burst"
	// CommandReset, without colon and number, fills the bucket.
	CommandReset = "rate.limit.reset"
)

// A Change is the payload of signals about a rate or a burst that was set.
type Change struct {
	Rate  float64 `json:"rate"` // tokens per second
	Burst int     `json:"burst"`
}

// A Rejection is the payload of signals about a command that was not heeded.
type Rejection struct {
	Command string `json:"command"` // one of the Command constants
	Value   string `json:"value"`   // what came behind it, at most 64 bytes
	Rule    string `json:"rule"`    // why it was not heeded
}

// The signals with payloads. What a command brought about is caused by it; see
// [core.Sink.Because].
var (
	RateApplied     = core.NewKind[Change](SignalApplied)
	BurstApplied    = core.NewKind[Change](SignalBurstApplied)
	CommandRejected = core.NewKind[Rejection](SignalRejected)
)

// commandPattern matches all commands and, because of what may come before them, a
// little more. It matches none of the signals that are raised here.
const commandPattern = "*" + CommandSet + ":*, *" + CommandIncrease + ":*, *" + CommandDecrease + ":*, *" +
	CommandBurst + ":*, *" + CommandReset

var commands = []string{CommandSet, CommandIncrease, CommandDecrease, CommandBurst}

// parseCommand takes the command of a signal's name apart; "" if it is none. Of
// several, the first counts: "rate.limit.set:rate.limit.burst:5" sets no burst.
func parseCommand(name string) (command, value string) {
	for _, c := range commands {
		if v, ok := core.ParseCommand(name, c); ok && (command == "" || len(v) > len(value)) {
			command, value = c, v
		}
	}
	if before, ok := strings.CutSuffix(name, CommandReset); ok && command == "" {
		if before == "" || strings.HasSuffix(before, ".") || strings.HasSuffix(before, ":") {
			return CommandReset, ""
		}
	}
	return command, strings.TrimSpace(value)
}

// parseNumber reads a decimal number, and nothing that only a machine would write.
func parseNumber(value string) (n float64, rule string) {
	if value == "" || strings.Trim(value, "0123456789.eE+-") != "" {
		return 0, "must be a decimal number such as 12.5 or 1e3"
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil && !math.IsInf(n, 0): // infinite is what is too large
		return 0, "must be a decimal number such as 12.5 or 1e3"
	case n < 0:
		return 0, "must not be negative"
	}
	return math.Abs(n), "" // -0 is 0
}

// next returns the rate that a command makes of a rate, or the rule against it.
func nextRate(rate float64, command string, n float64) (next float64, rule string) {
	switch command {
	case CommandSet:
		return n, rateRule(n)
	case CommandIncrease, CommandDecrease:
		if n == 0 {
			return 0, "must be more than 0"
		}
		if n > MaxRate {
			return 0, ruleMaxRate
		}
	}
	if rate == Unlimited {
		return 0, "the rate is unlimited: set it first"
	}
	if command == CommandIncrease {
		return rate + n, rateRule(rate + n)
	}
	next = max(rate-n, min(1, rate))
	if next == rate {
		return 0, "a decrease does not go below 1 per second"
	}
	return next, ""
}

const (
	ruleMaxRate = "must be at most 1e9 per second"
	ruleBurst   = "must be at least 1 and at most 2^40"
	maxText     = 64
)

// rateRule is the rule that a rate from a command breaks; "" if none.
func rateRule(rate float64) string {
	switch {
	case rate > MaxRate:
		return ruleMaxRate
	case rate != 0 && rate < MinRate:
		return "must be 0, which pauses, or at least 1e-9 per second"
	}
	return ""
}

// A target is a limiter, or a part of one, that can be told to change. What it
// changes it says on a raiser.
type target interface {
	// changeRate sets the rate to what next makes of it, or returns the rule
	// against it. It calls next under a lock.
	changeRate(on core.Raiser, next func(rate float64) (float64, string)) (rule string)
	changeBurst(on core.Raiser, burst int64)
	Reset()
}

// heed does what a signal says to a target of that name.
func heed(sink *core.Sink, t target, name string, s core.Signal) {
	command, value := parseCommand(s.Name)
	if command == "" {
		return
	}
	if command == CommandReset {
		t.Reset()
		return
	}
	on := sink.Because(s)
	n, rule := parseNumber(value)
	switch {
	case rule != "":
	case command != CommandBurst:
		rule = t.changeRate(on, func(rate float64) (float64, string) { return nextRate(rate, command, n) })
	case n < 1 || n > float64(maxBurst):
		rule = ruleBurst
	default:
		t.changeBurst(on, int64(n))
	}
	if rule != "" {
		if len(value) > maxText {
			value = strings.ToValidUTF8(value[:maxText], "")
		}
		CommandRejected.Raise(on, name, Rejection{command, value, rule})
	}
}
