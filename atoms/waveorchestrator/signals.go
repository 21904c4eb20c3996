package waveorchestrator

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ephemeralgo/ephemeral/core"
)

// The signals of an orchestrator. Their payload is an [Event]; their key is the name of the
// worker or the number of the wave that they are about. Some names have details after the
// constant; the payload has these details, too. Match such names by pattern: "worker.failed:*"
// matches all failures, "worker.completed:db:*" all completed runs of the worker db.
const (
	// SignalStarted is raised when an execution begins.
	SignalStarted = "wave.orchestrator.started"
	// SignalCompleted is raised as SignalCompleted:duration={ms}:results={count} when an
	// execution has ended with any outcome; count is the number of workers that have
	// completed.
	SignalCompleted = "wave.orchestrator.completed"
	// SignalFailed is raised when all waves were run and no worker has completed.
	SignalFailed = "wave.failed"
	// SignalTimeout is raised as SignalTimeout:elapsed={ms} when [Options.TotalTimeout]
	// has passed.
	SignalTimeout = "wave.timeout"
	// SignalWaveStarted is raised as SignalWaveStarted:wave={N}:workers={count}, with the
	// number of workers that are not skipped. If all workers of a wave are skipped, it does
	// not start.
	SignalWaveStarted = "wave.started"
	// SignalEarlyExit is raised as SignalEarlyExit:wave={N} when a result of that wave
	// was decisive. The payload names the worker.
	SignalEarlyExit = "wave.early_exit"

	// SignalWorkerStarted is raised as SignalWorkerStarted:{name}.
	SignalWorkerStarted = "worker.started"
	// SignalWorkerCompleted is raised as SignalWorkerCompleted:{name}:duration={ms}.
	SignalWorkerCompleted = "worker.completed"
	// SignalWorkerFailed is raised as SignalWorkerFailed:{name}:error={message} when a worker
	// has returned an error or panicked. The name of the signal has up to 128 bytes of the
	// message, without commas, "*", "?" and control characters. The payload has the error.
	SignalWorkerFailed = "worker.failed"
	// SignalWorkerTimeout is raised, instead of SignalWorkerFailed, as
	// SignalWorkerTimeout:{name}:duration={ms} when a worker has taken longer than
	// [Options.WorkerTimeout].
	SignalWorkerTimeout = "worker.timeout"
	// SignalWorkerAbandoned is raised when a worker has not returned within
	// [Options.Grace].
	SignalWorkerAbandoned = "worker.abandoned"

	// SignalBreakerOpened is held as SignalBreakerOpened:{name}:failures={count} while a
	// breaker is open, for [Options.BreakerReset] or until Close. Others can wait for its end
	// with [core.Options.DeferOn]. It has no payload and no Source.
	SignalBreakerOpened = "circuit.opened"
	// SignalBreakerClosed is raised when a probe has completed.
	SignalBreakerClosed = "circuit.closed"
)

// The kinds of the signals whose names are constant.
var (
	Started         = core.NewKind[Event](SignalStarted)
	Failed          = core.NewKind[Event](SignalFailed)
	WorkerAbandoned = core.NewKind[Event](SignalWorkerAbandoned)
	BreakerClosed   = core.NewKind[Event](SignalBreakerClosed)
)

// An Event is the payload of an orchestrator's signals:
//
//	e, ok := signal.Payload().(waveorchestrator.Event)
//
// Which fields are set depends on the signal.
type Event struct {
	Execution core.OperationID // the operation that is the execution
	Worker    string
	Wave      int
	Workers   int           // SignalWaveStarted: that run; SignalCompleted: that have completed
	Duration  time.Duration // of the run, or of the execution so far
	Err       error         // why the worker, or with SignalFailed the execution, failed
	Outcome   Outcome       // SignalCompleted
}

func waveStarted(key string, workers int) string {
	return SignalWaveStarted + ":wave=" + key + ":workers=" + strconv.Itoa(workers)
}

// millis is d in whole milliseconds.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// maxMessage is how much of an error is in the name of a signal, in bytes.
const maxMessage = 128

// message is the text of an error as it can be part of a name. If its Error method panics,
// the text says so.
func message(err error) string {
	text := fmt.Sprintf("%v", err)
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], "_")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == ',':
			return ';'
		case r == '*', r == '?', unicode.IsControl(r):
			return '_'
		}
		return r
	}, text)
	return strings.TrimRightFunc(text, unicode.IsSpace)
}
